// `turnout doctor migrate`: golden reports on the bundled example, and changes held to the truth tables of the scenarios.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { doctor } from "../src/cli/commands/doctor.ts";
import { packetChanges, type Side } from "../src/explain/migrate/packets.ts";
import { remarksOn } from "../src/inspect/readiness.ts";
import { families, familyOf, isLoopback } from "../src/model/address.ts";
import { modes } from "../src/modes/index.ts";
import type { Behavior } from "../src/routing/behavior.ts";
import { routesFor } from "./scenario-routes.ts";
import {
  casesFor,
  caseText,
  type ExpectedOutcome,
  type ModeName,
  modeNames,
  type PacketCase,
  readScenario,
  scenarioNames,
} from "./scenarios.ts";
import { readStories } from "./stories.ts";
import { outputOf } from "./support/command-output.ts";

const root = join(import.meta.dirname, "..");
const shop = ["--source", `files:${join(root, "test/support/shop")}`, "--node=node-a"];
const scratch = mkdtempSync(join(tmpdir(), "turnout-doctor-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const reportOf = (...argv: string[]) => outputOf(doctor, "migrate", ...argv);

const golden = (name: string) => join(root, "test/golden/commands", `doctor-${name}.txt`);

function configFile(name: string, text: string): string {
  const path = join(scratch, `${name}.yaml`);
  writeFileSync(path, `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${text}`);
  return path;
}

describe("doctor", () => {
  it.each([
    [["migrat"], 'unexpected argument "migrat"; example: turnout doctor migrate --to=nftables'],
    [["--to=nftables"], "--to requires an argument: turnout doctor migrate --to=…"],
    [["--source=files:x"], "cannot check files:x: --source must be daemon, daemon:SOCKET or playground"],
    [["--source=daemon:/nonexistent/sock"], "no daemon is running on this machine"],
  ])("reports the usage error in %j", async (argv, message) => {
    const { code, out, err } = await outputOf(doctor, ...argv);
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(message);
  });
});

describe("doctor migrate", () => {
  it.each([
    ["ipvs", "nftables"],
    ["iptables", "nftables"],
    ["userspace", "nftables"],
    ["nftables", "iptables"],
  ])("from %s to %s", async (from, to) => {
    const text = await reportOf(`--from=${from}`, `--to=${to}`, ...shop);
    expect({ code: text.code, err: text.err }).toEqual({ code: 3, err: "" });
    await expect(text.out).toMatchFileSnapshot(golden(`${from}-${to}`));
  });

  it("prints the same as JSON", async () => {
    const { out } = await reportOf("--from=ipvs", "--to=nftables", "-o", "json", ...shop);
    await expect(out).toMatchFileSnapshot(golden("ipvs-nftables.json"));
  });

  it("reads the mode and the settings from the file of kube-proxy", async () => {
    const file = configFile(
      "ipvs",
      `mode: ipvs
clusterCIDR: 10.0.0.0/8
nodePortAddresses: [primary]
ipvs: { scheduler: lc, strictARP: true, excludeCIDRs: [192.0.2.0/24], tcpTimeout: 900s, minSyncPeriod: 5s, syncPeriod: 60s }
iptables: { masqueradeAll: true }
nftables: { syncPeriod: 60s }
`,
    );
    const { out, code } = await reportOf(`--config=${file}`, ...shop);
    expect(code).toBe(3);
    await expect(out).toMatchFileSnapshot(golden("config"));
  });

  it("lists no packets where nothing changes", async () => {
    const empty = join(scratch, "empty.yaml");
    writeFileSync(
      empty,
      "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {addresses: [{type: InternalIP, address: 192.168.0.2}]}\n",
    );
    const { out } = await reportOf("--from=iptables", "--to=ipvs", `--source=files:${empty}`, "--node=a");
    expect(out).not.toContain("Packets");
  });

  it.each([
    [["--from=ipvs", "--to=ebpf", ...shop], "--to must be nftables, iptables, ipvs or userspace"],
    [["--from=toString", ...shop], "--from must be nftables, iptables, ipvs or userspace"],
    [["--to=nftables", ...shop], "--from or --config is required"],
    [["--from=nftables", ...shop], "--from and --to are both nftables"],
    [["--from=ipvs", "more", ...shop], 'unexpected argument "more"'],
    [["--from=ipvs", "-o", "yaml", ...shop], "text or json"],
    [["--config=/nonexistent", ...shop], "cannot read /nonexistent"],
  ])("reports the usage error in %j", async (argv, answer) => {
    const { code, err, out } = await reportOf(...argv);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(answer);
  });

  it("refuses a file that kube-proxy would refuse", async () => {
    const { code, err } = await reportOf(`--config=${configFile("bad", "mode: ebpf\n")}`, ...shop);
    expect(code).toBe(1);
    expect(err).toContain("must be iptables, ipvs, nftables, userspace or blank");
  });
});

describe("packets that are handled differently", () => {
  const pairs = modeNames.flatMap((from) =>
    modeNames.filter((to) => to !== from).map((to) => [from, to] as const),
  );

  const scenarios = scenarioNames()
    .map(readScenario)
    .filter(({ settings }) => settings.forwardPolicy === "ACCEPT");
  const sides = scenarios.map(({ objects, settings }) =>
    Object.fromEntries(
      modeNames.map((mode) => {
        const [ipv4, ipv6] = families.map((family) => routesFor(objects, settings, mode, family));
        return [mode, { mode: modes[mode], routes: { ipv4: ipv4!, ipv6: ipv6! } }];
      }),
    ),
  ) as Record<ModeName, Side>[];

  it.each(pairs)("from %s to %s match the truth tables", (from, to) => {
    const missed = scenarios.flatMap(({ packets }, i) => {
      const changes = packetChanges(sides[i]![from], sides[i]![to]);
      const places = new Set(
        changes.flatMap(({ subject, concerns }) =>
          concerns.flatMap(({ at }) => at.map(addressIn)).map((address) => placeName(subject, address)),
        ),
      );
      return differing(packets, from, to)
        .filter(isOurs)
        .filter(
          ({ to: { address } }) => !places.has(address) && !places.has(placeName("unallocated", address)),
        )
        .map(caseText);
    });
    expect(missed).toEqual([]);
  });

  it("are none between a mode and itself", () => {
    for (const side of sides.flatMap((each) => Object.values(each)))
      expect(packetChanges(side, side)).toEqual([]);
  });
});

/** One address that no Service has represents all of its family. */
function placeName(subject: string, address: string): string {
  return subject === "unallocated" ? `unallocated ${familyOf(address)}` : address;
}

describe("habits", () => {
  const modesOf = (scenario: string, name: RegExp) =>
    readStories(scenario)
      .filter((story) => name.test(story.name))
      .flatMap(({ modes }) => modes);
  const having = (is: (behavior: Behavior) => boolean) =>
    modeNames.filter((mode) => is(modes[mode].behavior));

  it("match the stories", () => {
    expect(having(({ invalidPackets }) => invalidPackets === "drop")).toEqual(
      modesOf("invalid-packets", /^dropped/),
    );
    expect(having(({ invalidPackets }) => invalidPackets === "pass")).toEqual(
      expect.arrayContaining(modesOf("invalid-packets", /^passed/)),
    );
    expect(having(({ healthCheckPortsAccepted }) => healthCheckPortsAccepted)).toEqual(
      modesOf("health-check", /ipvs mode accept the port/),
    );
    expect(having(({ affinity }) => affinity === "each frontend")).toEqual(
      modesOf("affinity", /every frontend pins on its own/),
    );
  });

  it("past a firewall match the truth table", () => {
    const { packets } = readScenario("forward-policy-drop");
    for (const mode of modeNames) {
      const outcomes = casesFor(packets, mode, "turnout").map(({ outcome }) => outcome.kind === "forward");
      const passes = outcomes.every(Boolean) ? "all" : outcomes.some(Boolean) ? "masqueraded" : "none";
      expect([mode, modes[mode].behavior.pastForwardPolicy]).toEqual([mode, passes]);
    }
  });
});

describe("remarks on a node", () => {
  const files: Readonly<Record<string, string>> = {
    "/proc/sys/net/ipv4/conf/all/route_localnet": "1\n",
    "/proc/sys/net/ipv4/conf/all/arp_ignore": "1\n",
    "/proc/sys/net/ipv4/ip_forward": "1\n",
    "/sys/class/net/kube-ipvs0/ifindex": "7\n",
  };
  const read = (path: string) => files[path] ?? null;

  it("name leftovers of the old mode, and what the new mode is missing", () => {
    const about = (remarks: readonly string[]) => remarks.map((remark) => remark.split(" ", 4).join(" "));
    expect(about(remarksOn("ipvs", "nftables", read))).toEqual([
      "arp_ignore and arp_announce stay",
      "ipvs mode switched net.ipv4.ip_forward",
      "kube-ipvs0 and its addresses,",
    ]);
    expect(about(remarksOn("iptables", "nftables", read))).toEqual(["route_localnet is on, which"]);
    expect(about(remarksOn("nftables", "ipvs", read))).toEqual(["The module ip_vs is"]);
    expect(remarksOn("ipvs", "nftables", () => null)).toEqual([]);
  });
});

/** Packets whose outcome in the tables differs in the other mode. */
function differing(packets: readonly PacketCase[], from: ModeName, to: ModeName): PacketCase[] {
  const after = new Map(casesFor(packets, to, "turnout").map((packet) => [caseText(packet), packet.outcome]));
  return casesFor(packets, from, "turnout").filter((packet) => {
    const then = after.get(caseText(packet));
    return then !== undefined && outcomeText(then) !== outcomeText(packet.outcome);
  });
}

function outcomeText(outcome: ExpectedOutcome): string {
  if (outcome.kind !== "forward") return outcome.kind;
  return outcome.choices.map(({ endpoint, masquerade }) => `${endpoint} ${masquerade}`).join();
}

/** What a Service of this proxy has a part in; of loopback the first address represents all, and packets of outside senders are left to the kernel. */
function isOurs({ from, to, scenario }: PacketCase): boolean {
  return (
    scenario !== "not-ours" &&
    !(from.kind === "outside" && isLoopback(to.address)) &&
    to.address !== "127.0.0.2"
  );
}

function addressIn(at: string): string {
  const [, bracketed, plain] = /^(?:\[(.+)\]|([^/]+?))(?::\d+)?(?:\/\w+)?$/.exec(at) ?? [];
  return bracketed ?? plain ?? at;
}
