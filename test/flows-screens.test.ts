// Golden screens of `turnout flows` and `turnout doctor flows`, on a cluster and flows that are written down here.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { doctor } from "../src/cli/commands/doctor.ts";
import { flows } from "../src/cli/commands/flows.ts";
import { parseSelector } from "../src/inspect/flow-selector.ts";
import type { Flow } from "../src/model/flow.ts";
import { printable } from "../src/model/printable.ts";
import { nftablesBehavior } from "../src/modes/nftables/behavior.ts";
import { systemClock } from "../src/observe/clock.ts";
import { attributor } from "../src/traffic/attribute.ts";
import { findingOf } from "../src/traffic/classify.ts";
import { eligibilityReader } from "../src/traffic/eligibility.ts";
import { rowOf } from "../src/traffic/flow-row.ts";
import { keptAliveByEntry } from "../src/traffic/kept-alive.ts";
import { flowLine, printRows, printTallies, quantity } from "../src/traffic/print-rows.ts";
import { exitCodeOf, FlowFindings, printReport } from "../src/traffic/report.ts";
import { matcherOf } from "../src/traffic/selector.ts";
import { FlowTally } from "../src/traffic/tally.ts";
import { outputWith } from "./support/command-output.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "./support/routed.ts";
import { trackedView } from "./support/tracked-flows.ts";

const root = join(import.meta.dirname, "..");
const golden = (name: string) => join(root, "test/golden/commands", name);
const now = 1_800_000_000_000;

const routes = {
  ...routed(
    [
      servicePort("shop/web:http", {
        nodePort: 30_080,
        endpoints: [
          endpoint("10.180.0.1:8080"),
          endpoint("10.0.2.1:8080"),
          endpoint("10.0.2.2:8080", { state: "draining" }),
        ],
      }),
      servicePort("kube-system/dns:dns", {
        protocol: "udp",
        port: 53,
        clusterIP: "172.30.0.2",
        endpoints: [endpoint("10.180.0.3:53")],
      }),
      // Names that no API server accepts, but a file may contain.
      servicePort("shop/evil\u001b[2J\nweb:a\tb", {
        clusterIP: "172.30.0.66",
        endpoints: [endpoint("10.0.2.66:80", { nodeName: "node\u202eb" })],
      }),
    ],
    { ...ipv4Settings, zone: "a" },
  ),
  serviceCIDRs: ["172.30.0.0/16"],
};

const counters = {
  original: { packets: 1200, bytes: 98_000 },
  reply: { packets: 2400, bytes: 3_400_000 },
};
const tracked: readonly (readonly [string, Partial<Flow>])[] = [
  [
    "tcp 10.180.0.9:40312 > 172.30.0.10:80 > 10.0.2.1:8080",
    { timeout: 86_399, counters, startedAt: now - 7_300_000 },
  ],
  ["tcp 203.0.113.9:51000 > 192.168.0.2:30080 > 10.0.2.2:8080", { timeout: 86_000, mark: 0x4000 }],
  ["tcp 10.180.0.9:40313 > 172.30.0.10:80 > 10.0.2.9:8080", { timeout: 80_000 }],
  ["tcp 10.180.0.9:40314 > 172.30.0.10:80 > 10.180.0.1:8080", { state: "TIME_WAIT", timeout: 90 }],
  ["udp 10.180.0.9:5353 > 172.30.0.2:53 > 10.180.0.3:53", { timeout: 118 }],
  [
    "udp 10.180.0.8:5353 > 172.30.0.2:53 > 10.180.0.3:53",
    { status: 0x8, timeout: 29, startedAt: now - 46_800_000 },
  ],
  ["tcp 10.180.0.9:40315 > 172.30.0.99:80 > 10.0.2.1:8080", { timeout: 400 }],
  ["udp 10.180.0.9:40316 > 172.30.0.2:53", { status: 0x8, timeout: 12, zone: 7 }],
  ["tcp 10.180.0.9:40317 > 172.30.0.66:80 > 10.0.2.66:80", {}],
  ["tcp 10.180.0.9:40318 > 192.0.2.1:443", {}],
];

const attribute = attributor(routes, nftablesBehavior, { conntrack: "shared" });
const eligibilityOf = eligibilityReader(routes, nftablesBehavior);
const views = tracked.map(([text, more]) => trackedView(text, more));
const rows = views.map((flow) => rowOf(flow, attribute(flow), { eligibilityOf, now }));

describe("turnout flows", () => {
  it("prints a line for each flow", () =>
    expect(printable(printRows(rows, "text"))).toMatchFileSnapshot(golden("flows.txt")));

  it("prints more columns and the reasons with -o wide", () => {
    const named = rows.map((row) => (row.endpoint === "10.0.2.1:8080" ? { ...row, pod: "shop/web-1" } : row));
    return expect(printable(printRows(named, "wide"))).toMatchFileSnapshot(golden("flows-wide.txt"));
  });

  it("prints everything with -o json", () =>
    expect(printable(`${JSON.stringify(rows, null, 2)}\n`)).toMatchFileSnapshot(golden("flows.json.txt")));

  it.each(["service", "endpoint"] as const)("sums flows by %s", (by) => {
    const tally = new FlowTally();
    for (const flow of views) tally.add(flow, attribute(flow));
    return expect(printable(printTallies(tally.ports, by))).toMatchFileSnapshot(golden(`flows-by-${by}.txt`));
  });

  it("never breaks a line, whatever names a cluster contains", () => {
    const text = printRows(rows, "wide") + rows.map((row) => `${flowLine(row)}\n`).join("");
    expect(text.split("\n")).toHaveLength(2 * rows.length + 2);
    for (const character of ["\u001b", "\u202e", "\t"]) expect(text).not.toContain(character);
  });

  it.each([
    [812, "812"],
    [999, "999"],
    [1000, "1.0k"],
    [999_960, "1.0M"],
    [4_500_000_000, "4.5G"],
  ])("writes %d as %s", (value, text) => expect(quantity(value)).toBe(text));

  it.each([
    ["svc/shop/web", 4],
    ["shop/web:http", 4],
    ["shop/web:81", 0],
    ["kube-system/dns:53/udp", 3],
    ["10.0.2.1:8080", 2],
    ["172.30.0.10:80", 3],
    ["pod:10.180.0.8", 1],
    ["10.0.2.9", 1],
    [":30080", 1],
    ["nodeport:30080/udp", 0],
    [":8080", 0],
  ])("selects by %s", (text, count) => {
    const parsed = parseSelector(text, null);
    const selector =
      parsed.kind === "service"
        ? {
            kind: "service" as const,
            service: `${parsed.to.namespace}/${parsed.to.name}`,
            port: parsed.to.port,
            protocol: parsed.to.protocol,
          }
        : parsed.kind === "resolved"
          ? parsed.selector
          : null;
    const matches = matcherOf(selector!);
    expect(views.filter((flow) => matches(flow, attribute(flow)))).toHaveLength(count);
  });
});

describe("turnout doctor flows", () => {
  const facts = { entries: 120, maxEntries: 262_144, insertFailed: 0, drop: 0, earlyDrop: 0 };
  const node = { node: "node-a", mode: "nftables" };

  function examined(some = views): FlowFindings {
    const findings = new FlowFindings();
    for (const flow of some) {
      const attribution = attribute(flow);
      const finding = findingOf(flow, attribution, eligibilityOf, keptAliveByEntry(now));
      findings.add(flow, attribution, finding, () => rowOf(flow, attribution, { eligibilityOf, now }));
    }
    return findings;
  }

  it("prints classes with counts, reasons and examples", () => {
    const many = [...views, ...Array.from({ length: 9 }, () => views[2]!)];
    const report = examined(many).report(facts, null);
    expect(exitCodeOf(report, null)).toBe(3);
    return expect(printable(printReport(node, report, null))).toMatchFileSnapshot(golden("doctor-flows.txt"));
  });

  it("prints who fills a full table", () => {
    const full = { entries: 262_000, maxEntries: 262_144, insertFailed: 40, drop: 7, earlyDrop: 1200 };
    const before = { ...full, drop: 4, earlyDrop: 1200, insertFailed: 40 };
    const report = examined().report(full, { facts: before, seconds: 5 });
    expect(exitCodeOf(report, null)).toBe(4);
    return expect(printable(printReport(node, report, null))).toMatchFileSnapshot(
      golden("doctor-flows-full.txt"),
    );
  });

  it("prints what was deleted, and exits with 0 when nothing is left", () => {
    const some = [views[0]!, views[5]!];
    const report = examined(some).report(facts, null);
    const deletion = { named: ["unreplied"], deleted: 1, kept: 0 };
    expect(exitCodeOf(report, deletion)).toBe(0);
    expect(exitCodeOf(report, { ...deletion, deleted: 0 })).toBe(3);
    return expect(printable(printReport(node, report, deletion))).toMatchFileSnapshot(
      golden("doctor-flows-deleted.txt"),
    );
  });

  it("finds nothing in an empty table", () => {
    const report = examined([]).report(facts, null);
    expect(exitCodeOf(report, null)).toBe(0);
    expect(printReport(node, report, null)).toBe(
      [
        "node-a, nftables mode: 0 flows, 0 of Services",
        "ok        endpoint-gone   none",
        "ok        service-deleted none",
        "ok        not-eligible    none",
        "ok        untranslated    none",
        "ok        unreplied       none",
        "ok        table           120 of 262,144 entries (0 %)",
        "",
      ].join("\n"),
    );
  });
});

describe("usage errors", () => {
  const shop = ["--source", `files:${join(root, "test/support/shop")}`, "--node=node-a"];

  async function failure(
    command: typeof flows,
    argv: readonly string[],
    missing: string | null = null,
  ): Promise<string> {
    const { code, out, err } = await outputWith(command, argv, {
      clock: { ...systemClock, wall: () => now, steady: () => 0 },
      missingRights: () => missing,
    });
    expect([code, out, err.trim().split("\n").length]).toEqual([1, "", 1]);
    return err;
  }

  it.each([
    [["!"], 'turnout flows: cannot select flows by "!"; use svc/shop/web'],
    [[":99999"], "invalid node port 99999"],
    [["--limit=0"], "--limit must be a number between 1 and 100000"],
    [["--follow", "--by=service"], "--follow and --by cannot be combined"],
    [["--by=pod"], "--by must be service or endpoint"],
    [["-o", "yaml"], "-o must be text, wide or json"],
    [["shop/wbe", ...shop], "did you mean svc/shop/web?"],
    [["shop/web:81", ...shop], "Service shop/web has no port 81"],
    [["pod/web-1", ...shop], "cannot look up pod web-1: files contain no pod addresses"],
  ])("flows %j", async (argv, message) => expect(await failure(flows, argv)).toContain(message));

  it("flows without the right to read conntrack", async () => {
    expect(await failure(flows, shop, "it requires root; run it with sudo")).toBe(
      "turnout flows: cannot read conntrack: it requires root; run it with sudo\n",
    );
  });

  it.each([
    [
      ["flows", "--delete=tcp"],
      "--delete must be endpoint-gone, service-deleted, not-eligible, untranslated or unreplied",
    ],
    [["flows", "--delete="], "--delete must be"],
    [["flows", "--reset-tcp=10.0.1.5"], "--reset-tcp must be the address and port of an endpoint"],
    [["flows", "--wait=1000"], "--wait must be a number of seconds up to 300"],
    [["flows", "--to=ipvs"], "--to requires an argument: turnout doctor migrate --to="],
    [["migrate", "--delete=unreplied"], "--delete requires an argument: turnout doctor flows --delete="],
    [["--wait=3"], "--wait requires an argument: turnout doctor flows --wait="],
    [["flwos"], 'unexpected argument "flwos"'],
  ])("doctor %j", async (argv, message) => expect(await failure(doctor, argv)).toContain(message));
});
