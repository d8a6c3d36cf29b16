// Golden tests of the commands that read the history of a daemon, and their usage errors.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunCommand } from "../src/cli/command.ts";
import { blame } from "../src/cli/commands/blame.ts";
import { diff } from "../src/cli/commands/diff.ts";
import { explain } from "../src/cli/commands/explain.ts";
import { history } from "../src/cli/commands/history.ts";
import type { CommandWorld } from "../src/cli/commands/kube-proxy.ts";
import { parseMoment, printMoment } from "../src/cli/moment.ts";
import { fromEnvironment, ownOptions } from "../src/cli/own-flags.ts";
import type { HistoryEntry } from "../src/history/entry.ts";
import { printEntry } from "../src/history/print.ts";
import { serveStatus } from "../src/observe/status/socket.ts";
import { node, service, serviceCIDR } from "./objects.ts";
import { outputWith } from "./support/command-output.ts";
import { type ShopDaemon, shopDaemon, shopService, webSlice } from "./support/history-daemon.ts";

const golden = (name: string) => join(import.meta.dirname, "golden/commands", name);
const scratch = mkdtempSync(join(tmpdir(), "turnout-history-"));
const socket = join(scratch, "status.sock");
const source = `--source=daemon:${socket}`;

let shop: ShopDaemon;
let close: () => void;
beforeAll(async () => {
  process.env.TZ = "UTC";
  shop = await shopDaemon();
  const minute = () => shop.clock.advance(60_000);
  minute();
  await shop.change("EndpointSlice", webSlice("1", "2", "4"));
  minute();
  await shop.change("Service", shopService({ sessionAffinity: "ClientIP", externalTrafficPolicy: "Local" }));
  minute();
  await shop.change("EndpointSlice", webSlice("1-", "2", "3!", "4"));
  minute();
  await shop.change("EndpointSlice", webSlice("2", "3", "4"));
  minute();
  await shop.change("EndpointSlice", webSlice("3"), {
    outcome: { kind: "failed", message: "Cannot apply 3 operations: EBUSY\u001b[2J" },
  });
  minute();
  await shop.change("EndpointSlice", webSlice(), { operations: 1 });
  minute();
  await shop.change("ServiceCIDR", serviceCIDR("kubernetes", "172.30.0.0/16"));
  minute();
  await shop.change("Node", node("node-a", { metadata: { labels: { "topology.kubernetes.io/zone": "b" } } }));
  minute();
  await shop.change("Service", service({}, { metadata: { name: "stock" } }));
  minute();
  await shop.remove("Service", "stock");
  minute();
  close = await shop.serve(socket);
});
afterAll(() => {
  close();
  rmSync(scratch, { recursive: true });
});

const outputOf = (command: RunCommand, ...argv: string[]) => outputWith(command, argv, { clock: shop.clock });

describe("history", () => {
  it.each([
    ["history", [], 0],
    ["history-service", ["shop/stock"], 0],
    ["history-since", ["--since=2m"], 0],
    ["history-none", ["shop/nothing", "--since=10:36"], 0],
  ])("%s", async (name, argv, code) => {
    const text = await outputOf(history, ...argv, source);
    expect({ code: text.code, err: text.err }).toEqual({ code, err: "" });
    await expect(text.out).toMatchFileSnapshot(golden(`${name}.txt`));
    const json = await outputOf(history, ...argv, source, "-o", "json");
    await expect(json.out).toMatchFileSnapshot(golden(`${name}.json.txt`));
  });

  it("text from a cluster or a kernel cannot break a line or a terminal", () => {
    const hostile = "a\u001b[31m\nb\tc\u202e";
    const entry: HistoryEntry = {
      kind: "change",
      seq: 1,
      at: 0,
      origin: "watch",
      clockStepMs: 0,
      causes: [
        {
          kind: "Service",
          namespace: hostile,
          name: hostile,
          event: "added",
          resourceVersion: hostile,
          receivedAt: 1,
        },
      ],
      moreCauses: 0,
      changes: [
        { family: "ipv4", kind: "added", service: hostile, port: hostile, protocol: "tcp", words: [hostile] },
      ],
      other: [hostile],
      written: {
        ipv4: { at: 1, latencyMs: 1, operations: 1, together: 1, refused: 0, failed: hostile },
      },
    };
    const text = printEntry(entry, printMoment);
    expect(text.split("\n")).toHaveLength(5);
    for (const character of ["\u001b", "\u202e", "\t"]) expect(text).not.toContain(character);
  });

  it("of a change that concerns many Services, the first are listed", () => {
    const change = {
      family: "ipv4",
      kind: "added",
      service: "s",
      port: "s",
      protocol: "udp",
      words: ["x"],
    } as const;
    const changes = Array.from({ length: 50 }, () => change);
    const entry = { causes: [], moreCauses: 0, changes, other: [], written: {}, clockStepMs: 0, at: 0 };
    const lines = printEntry({ ...entry, kind: "change", seq: 1, origin: "restart" }, printMoment).split(
      "\n",
    );
    expect([lines[0], lines[1], lines.length, lines[21]]).toEqual([
      "1970-01-01 00:00:00.000  changed while no daemon was running",
      "  s/udp x",
      24,
      "  and 30 more; turnout history SERVICE or -o json lists them",
    ]);
  });

  it("a clock that was set is reported, and the order stays", async () => {
    const other = await shopDaemon();
    const path = join(scratch, "clock.sock");
    const end = await other.serve(path);
    try {
      for (const [i, step] of [0, -480_000, 7_200_000].entries()) {
        other.clock.jump(step);
        other.clock.advance(60_000);
        await other.change("EndpointSlice", webSlice(String(i + 3)));
      }
      const { out } = await outputOf(history, `--source=daemon:${path}`);
      await expect(out).toMatchFileSnapshot(golden("history-clock.txt"));
    } finally {
      end();
    }
  });

  it("follows: prints what is recorded later, and survives a daemon that starts again", async () => {
    const stop = new AbortController();
    let out = "";
    let err = "";
    const world = {
      version: "0.0.0",
      environment: {},
      clock: shop.clock,
      stdout: (text: string) => {
        out += text;
      },
      stderr: (text: string) => {
        err += text;
      },
    } as unknown as CommandWorld;
    const seqs = () =>
      out.split("\n").flatMap((line) => (line === "" ? [] : [(JSON.parse(line) as HistoryEntry).seq]));
    const following = history(["--follow", "-o", "json", source], world, stop.signal);
    await expect.poll(() => shop.clock.pending()).toBeGreaterThan(0);
    await shop.change("Service", shopService({ externalIPs: ["203.0.113.7"] }));
    const tick = () => {
      shop.clock.advance(500);
      return seqs().length;
    };
    await expect.poll(tick).toBe(11);
    close();
    // It does not respond for a while.
    shop.clock.advance(500);
    const again = await shopDaemon();
    close = await again.serve(socket);
    await again.change("EndpointSlice", webSlice("9"));
    await expect.poll(tick).toBe(12);
    expect(seqs().slice(-2)).toEqual([11, 1]);
    stop.abort();
    expect(await following).toBe(0);
    expect(err).toMatch(/^! the daemon at .* closed the connection: .*; retrying\n$/);
    close();
    close = await shop.serve(socket);
  });
});

describe("blame", () => {
  it.each([
    ["blame", ["172.30.0.10:80"], 0],
    ["blame-node-port", ["nodeport:30080"], 0],
    ["blame-none", ["172.30.0.99:80"], 3],
  ])("%s", async (name, argv, code) => {
    const text = await outputOf(blame, ...argv, source);
    expect({ code: text.code, err: text.err }).toEqual({ code, err: "" });
    await expect(text.out).toMatchFileSnapshot(golden(`${name}.txt`));
    const json = await outputOf(blame, ...argv, source, "-o", "json");
    await expect(json.out).toMatchFileSnapshot(golden(`${name}.json.txt`));
  });
});

describe("--at", () => {
  it.each([
    ["10:30:30", "forward"],
    ["10:33:30", "forward"],
    ["10:36:30", "reject"],
  ])("explain at %s", async (at, outcome) => {
    const { code, out, err } = await outputOf(explain, "outside", "nodeport:30080", source, `--at=${at}`);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`outcome   ${outcome}`);
    await expect(out).toMatchFileSnapshot(golden(`explain-at-${at.replaceAll(":", "")}.txt`));
  });

  it("diff between two moments, and between one and now", async () => {
    const between = await outputOf(diff, source, "--at=10:33:30", "--at=10:30:30");
    expect({ code: between.code, err: between.err }).toEqual({ code: 3, err: "" });
    await expect(between.out).toMatchFileSnapshot(golden("diff-at.txt"));
    const now = await outputOf(diff, source, "--at=10:30:30", "-o", "json");
    await expect(now.out).toMatchFileSnapshot(golden("diff-at-now.json.txt"));
    const same = await outputOf(diff, source, "--at=10:30:30", "--at=10:30:20");
    expect(same).toEqual({ code: 0, out: "No packet is handled differently.\n", err: "" });
  });

  it.each([
    [explain, ["outside", "nodeport:30080", "--at=10:29"], "history begins at 2026-11-18T10:30:00.001Z"],
    [explain, ["outside", "nodeport:30080", "--at=10:41", "--live"], "the kernel has no past"],
    [explain, ["outside", "nodeport:30080", "--at=yesterday"], "use for example 10:41"],
    [explain, ["outside", "nodeport:30080", "--at=25:00"], "is not a time"],
    [
      explain,
      ["outside", "nodeport:30080", "--at=2030-01-01T00:00:00Z"],
      "is in the future; it is 2026-11-18",
    ],
    [
      explain,
      ["outside", "nodeport:30080", "--at=5m", "--node=node-b"],
      "--at requires the daemon of this node",
    ],
    [explain, ["outside", "nodeport:30080", "--at=5m", "--fresh"], "--at requires the daemon of this node"],
    [diff, ["--at=10:31", "--live"], "cannot be combined"],
    [diff, ["--at=1m", "--at=2m", "--at=3m"], "twice at most"],
    [history, ["--since=soon"], '--since: "soon" is not a time'],
    [history, ["172.30.0.1:80"], "invalid Service"],
    [history, ["--source=files:x"], "must be daemon, daemon:SOCKET or playground"],
    [history, ["--source=daemon:/nonexistent"], "no daemon is running on this machine"],
    [blame, [], "TO is required"],
    [blame, ["there!"], "invalid destination"],
  ])("%o reports the usage error in %j", async (command, argv, message) => {
    const { code, out, err } = await outputOf(command, source, ...argv);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(message);
    expect(err.trim().split("\n")).toHaveLength(1);
  });

  it("requires a daemon", async () => {
    const files = `--source=files:${join(import.meta.dirname, "support/shop")}`;
    const { err } = await outputOf(explain, "outside", "nodeport:30080", files, "--node=node-a", "--at=1m");
    expect(err).toContain("--at requires a daemon, which has the history");
  });
});

describe("without a history", () => {
  it("reports that it is off", async () => {
    const off = await shopDaemon(0);
    const path = join(scratch, "off.sock");
    const end = await off.serve(path);
    try {
      const listed = await outputOf(history, `--source=daemon:${path}`);
      expect(listed).toEqual({
        code: 1,
        out: "this daemon keeps no history; start it with --history-size=8Mi\n",
        err: "",
      });
      expect((await outputOf(blame, "172.30.0.10:80", `--source=daemon:${path}`)).code).toBe(1);
      const then = await outputOf(explain, "node", "svc/web", `--source=daemon:${path}`, "--at=1m");
      expect(then.err).toContain("this daemon keeps no history");
    } finally {
      end();
    }
  });

  it("reports a daemon of an earlier version", async () => {
    const path = join(scratch, "old.sock");
    const status = () => ({ pid: 1 }) as never;
    const end = await serveStatus(path, () => ({
      "/": status,
      "/relays": () => ({}),
      "/view": () => null,
      "/traffic": () => null,
      "/cluster": () => [null],
      "/history": () => [status()],
    }));
    try {
      const { code, err } = await outputOf(history, `--source=daemon:${path}`);
      expect([code, err]).toEqual([1, expect.stringContaining("it is of an earlier version")]);
    } finally {
      end();
    }
  });
});

describe("moments", () => {
  const now = Date.UTC(2026, 10, 18, 10, 41, 30);
  it.each([
    ["10:41", "2026-11-18 10:41:00.000"],
    ["10:41:29.5", "2026-11-18 10:41:29.500"],
    ["9:00", "2026-11-18 09:00:00.000"],
    ["10:42", "2026-11-17 10:42:00.000"],
    ["90s", "2026-11-18 10:40:00.000"],
    ["1h30m ago", "2026-11-18 09:11:30.000"],
    ["0s", "2026-11-18 10:41:30.000"],
    ["2026-11-18", "2026-11-18 00:00:00.000"],
    ["2026-11-18 10:41:07.312", "2026-11-18 10:41:07.312"],
    ["2026-11-18T11:41:07+01:00", "2026-11-18 10:41:07.000"],
    ["2026-11-18T10:41:07.312456789Z", "2026-11-18 10:41:07.312"],
  ])("%s is %s", (text, expected) => {
    expect(printMoment(parseMoment(text, now, "--at"))).toBe(expected);
  });

  it.each(["", "10", "24:00", "10:60", "10:41:60", "2026-13-01", "-5m", "5", "1h x", "now!"])(
    "%j is none",
    (text) => {
      expect(() => parseMoment(text, now, "--at")).toThrow(/--at: /);
    },
  );
});

describe("flags of turnout run", () => {
  it.each([
    [{}, { bytes: 8_388_608, ageMs: 86_400_000, directory: null }],
    [
      { "history-size": "1M", "history-age": "90m", "history-dir": "/var/lib/turnout" },
      { bytes: 1_000_000, ageMs: 5_400_000, directory: "/var/lib/turnout" },
    ],
    [
      { "history-size": "0", "history-dir": "" },
      { bytes: 0, ageMs: 86_400_000, directory: null },
    ],
  ])("%j", (flags, history) => {
    expect(ownOptions(flags, "0.0.0").history).toEqual(history);
  });

  it.each([
    ["history-size", "lots", '--history-size: "lots" is not a quantity'],
    ["history-size", "-1", "--history-size must not be negative"],
    ["history-age", "1 day", "--history-age: "],
    ["history-age", "0", "--history-age must be positive"],
  ])("--%s=%s is refused, and so is its variable", (name, value, message) => {
    expect(() => ownOptions({ [name]: value }, "0.0.0")).toThrow(message);
    const variable = `TURNOUT_${name.toUpperCase().replace("-", "_")}`;
    expect(() => fromEnvironment({ [variable]: value }, "0.0.0")).toThrow(variable);
  });
});
