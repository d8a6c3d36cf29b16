// Golden tests of `turnout status`: what it prints of a daemon, as text, as a row and as JSON.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { explain } from "../src/cli/commands/explain.ts";
import { render } from "../src/cli/commands/render.ts";
import { printStatus, status } from "../src/cli/commands/status.ts";
import { rowOf } from "../src/cli/status-row.ts";
import { writeConfig } from "../src/config/file/write.ts";
import { gitVersion } from "../src/config/version.ts";
import { defaultConfig } from "../src/explain/node-routes.ts";
import { playgroundSocket } from "../src/inspect/target.ts";
import { serveStatus } from "../src/observe/status/socket.ts";
import type { Status } from "../src/observe/status/status.ts";
import type { PaceReport } from "../src/sync/pace.ts";
import { golden, outputOf, shop } from "./support/shop-commands.ts";

const scratch = mkdtempSync(join(tmpdir(), "turnout-commands-"));
afterAll(() => rmSync(scratch, { recursive: true }));

describe("status", () => {
  const state: Status = {
    pid: 42,
    version: "v1.37.1",
    node: "node-a",
    mode: "nftables",
    families: ["ipv4"],
    source: "api",
    configuration: "kind: KubeProxyConfiguration\nmode: nftables\n",
    ownership: "plain",
    startedAt: 880_000,
    waits: null,
    lastSuccess: { ipv4: 990_000 },
    syncs: [
      {
        family: "ipv4",
        trigger: "change",
        startedAt: 989_998,
        finishedAt: 990_000,
        changedPorts: 1,
        servicePorts: 5,
        endpoints: 8,
        operations: 2,
        bytes: 300,
        readBack: false,
        outcome: { kind: "ok", refused: [] },
        objects: ["EndpointSlice shop/web-1 modified"],
      },
    ],
    latency: { p50: 3.2, p99: 12, samples: 250 },
    limits: [
      { name: "conntrack", unit: "entries", used: 120, limit: 262_144 },
      { name: "memory", unit: "bytes", used: 90 * 2 ** 20, limit: null },
    ],
    events: [
      {
        reason: "FailedToStartServiceHealthcheck",
        type: "Warning",
        regarding: { kind: "Service", namespace: "shop", name: "web" },
        note: "Cannot open health check node port 31000 on node node-a: in use",
        at: 890_000,
        count: 3,
        lastAt: 970_000,
        delivery: "sent",
      },
      {
        reason: "Starting",
        type: "Normal",
        regarding: { kind: "Node", name: "node-a" },
        note: "",
        at: 880_000,
        count: 1,
        lastAt: 880_000,
        delivery: "waiting",
      },
    ],
    pace: { ipv4: { kind: "cost", costMs: 2.13, budgetMs: 281.4, gapMs: 0, reason: "budget" } },
    drift: [{ at: 950_000, family: "ipv4", differences: 3, what: "nft changed our table" }],
    problems: [
      {
        kind: "invalid-address",
        object: "Service shop/broken",
        field: "spec.externalIPs[1]",
        message: "is no address",
      },
    ],
    watches: {
      Service: {
        synced: true,
        refused: false,
        lastEventAt: 985_000,
        lastError: null,
        failing: false,
        lastRestart: null,
        reconnects: 0,
        failures: 0,
        relists: 0,
        watchSince: 900_000,
        encoding: "protobuf",
        heardAt: 1000,
      },
    },
  };

  it("prints the state of the daemon", async () => {
    await expect(printStatus(state, 1_000_000)).toMatchFileSnapshot(golden("status.txt"));
  });

  it.for<[PaceReport, string]>([
    [{ kind: "period", gapMs: 1000 }, "1000 ms between Syncs, which minSyncPeriod sets"],
    [
      { kind: "cost", costMs: 2.13, budgetMs: 0, gapMs: 12.07, reason: "cost" },
      "12 ms after the last Sync, which used 2.1 ms of CPU: Syncs may use 15 % of one core",
    ],
    [
      { kind: "cost", costMs: 412.3, budgetMs: 0, gapMs: 1000, reason: "limit" },
      "1000 ms after the last Sync, which used 412 ms of CPU: the longest gap",
    ],
    [
      { kind: "cost", costMs: 3, budgetMs: 200, gapMs: 1000, reason: "failure" },
      "1000 ms after the last Sync, which failed",
    ],
  ])("prints how Syncs are paced and why: %j", ([pace, text]) => {
    const lines = printStatus({ ...state, pace: { ipv4: pace } }, 1_000_000).split("\n");
    expect(lines).toContain(`pace      ipv4: ${text}`);
  });

  it("prints what a starting daemon waits for, and nothing that is not known yet", () => {
    const lastError = { message: "connect ECONNREFUSED 127.0.0.1:6443", at: 998_000 };
    const silent = {
      ...state.watches.Service!,
      synced: false,
      lastEventAt: null,
      watchSince: null,
      encoding: null,
      lastError,
    };
    const starting = { ...state, families: [], syncs: [], lastSuccess: {}, watches: { Node: silent } };
    const waits = { for: 'Node "node-a" to be there, with an address', since: 990_000, until: 1_020_000 };
    expect(printStatus({ ...starting, waits }, 1_000_000).split("\n")).toEqual([
      "daemon    v1.37.1, process 42, up 2 min",
      "node      node-a, nftables mode",
      "source    api",
      'waiting   for Node "node-a" to be there, with an address: 10 s so far, at most 20 s more',
      "watches   Node: not synced yet, not open, last error 2 s ago: connect ECONNREFUSED 127.0.0.1:6443",
      "",
    ]);
    expect(printStatus({ ...state, waits: { ...waits, until: null } }, 1_000_000)).toContain(
      'waiting   for Node "node-a" to be there, with an address: 10 s so far\napplied',
    );
  });

  it("prints health with its reasons", () => {
    const reason = {
      kind: "refused",
      family: "ipv4",
      since: 940_000,
      message: "shop/web: no space",
    } as const;
    const health = { healthy: true, reasons: [reason], watchAges: {} };
    expect(printStatus({ ...state, health }, 1_000_000)).toContain(
      "health    healthy\n          refused, ipv4, for 60 s: shop/web: no space\napplied",
    );
    expect(printStatus({ ...state, health: { ...health, healthy: false } }, 1_000_000)).toContain(
      "health    UNHEALTHY\n",
    );
  });

  const healthy = { healthy: true, reasons: [], watchAges: { services: 4_000, nodes: 61_000 } };
  const late = { kind: "late", family: null, since: 0, message: "a\tb\nc" } as const;
  it.each<[string, Partial<Status>, string[]]>([
    ["a healthy daemon", { drift: [] }, ["ok", "10 s ago", "none", "61 s"]],
    ["drift", {}, ["ok", "10 s ago", "3 repaired, last 50 s ago", "61 s"]],
    [
      "a daemon that is late, on one line",
      { drift: [], health: { ...healthy, healthy: false, reasons: [late] } },
      ["unhealthy: late: a\\tb\\nc", "10 s ago", "none", "61 s"],
    ],
    ["a family without a Sync", { drift: [], families: ["ipv4", "ipv6"] }, ["ok", "not yet", "none", "61 s"]],
    [
      "a daemon that starts",
      { drift: [], health: healthy, waits: { for: "the Node", since: 990_000, until: null } },
      ["starting: waits 10 s for the Node", "10 s ago", "none", "61 s"],
    ],
  ])("prints one line of tab-separated fields: %s", (_, changes, fields) => {
    expect(rowOf({ ...state, health: healthy, ...changes }, 1_000_000)).toBe(
      `${["node-a", "nftables", ...fields, "v1.37.1"].join("\t")}\n`,
    );
  });

  it("groups watches with the same state", () => {
    const service = state.watches.Service!;
    const watches = { Service: service, Node: service, EndpointSlice: { ...service, synced: false } };
    const lines = printStatus({ ...state, watches }, 1_000_000).split("\n");
    const first = lines.findIndex((line) => line.startsWith("watches"));
    expect(lines.slice(first, first + 3)).toEqual([
      "watches   Service, Node: synced, open for 100 s, protobuf, last event 15 s ago",
      "          EndpointSlice: not synced yet, open for 100 s, protobuf, last event 15 s ago",
      expect.stringMatching(/^drift/),
    ]);
  });

  it("prints at most 20 Problems and the number of others", () => {
    const problems = Array.from({ length: 10_000 }, (_, i) => ({
      ...state.problems[0]!,
      object: `Service shop/s${i}`,
    }));
    const lines = printStatus({ ...state, problems }, 1_000_000)
      .trimEnd()
      .split("\n");
    expect(lines.filter((line) => line.includes("is no address"))).toHaveLength(20);
    expect(lines.at(-1)).toBe("          and 9980 more; -o json lists all");
  });

  it("prints the answer of the socket as JSON", async () => {
    const socket = join(scratch, "sockets", "status.sock");
    const close = await serveStatus(socket, () => ({
      "/": () => state,
      "/relays": () => ({}),
      "/view": () => null,
      "/traffic": () => null,
      "/cluster": () => [null],
      "/history": () => [],
    }));
    try {
      const json = await outputOf(status, `--source=daemon:${socket}`, "-o", "json");
      expect({ code: json.code, err: json.err }).toEqual({ code: 0, err: "" });
      await expect(json.out).toMatchFileSnapshot(golden("status.json.txt"));
      const text = await outputOf(status, `--source=daemon:${socket}`);
      expect(text.out).toBe(printStatus(state, 1_000_000));
    } finally {
      close();
    }
  });

  it.each([
    ["of another version is not queried; its source is read", gitVersion("0.0.1"), [], 0, "shop/web:http"],
    ["is not queried with --fresh", gitVersion("0.0.0"), ["--fresh"], 0, "shop/web:http"],
    ["is not queried with --anew, the earlier name", gitVersion("0.0.0"), ["--anew"], 0, "shop/web:http"],
    [
      "that has not read the cluster yet is reported",
      gitVersion("0.0.0"),
      [],
      1,
      "the daemon has not read the cluster yet",
    ],
  ])("a daemon %s", async (_, version, flags, code, text) => {
    const socket = join(scratch, "sockets", "young.sock");
    const configuration = writeConfig(defaultConfig("nftables"));
    const facts = { ...state, node: "node-a", source: shop[1]!, version, configuration };
    const answers = {
      "/": () => facts,
      "/relays": () => ({}),
      "/view": () => null,
      "/traffic": () => null,
      "/cluster": () => [null],
      "/history": () => [],
    };
    const close = await serveStatus(socket, () => answers);
    try {
      const { code: ended, out, err } = await outputOf(render, `--source=daemon:${socket}`, ...flags);
      expect({ ended, text: `${out}${err}` }).toEqual({ ended: code, text: expect.stringContaining(text) });
    } finally {
      close();
    }
  });

  it.each([["render"], ["explain", "node", "svc/shop/web"]])(
    "reports a daemon that exits mid-response to %j",
    async (name, ...argv) => {
      const socket = join(scratch, "sockets", "short.sock");
      const configuration = writeConfig(defaultConfig("nftables"));
      const facts = {
        ...state,
        node: "node-a",
        source: shop[1]!,
        version: gitVersion("0.0.0"),
        configuration,
      };
      const end = () => {
        close();
        return null;
      };
      const answers = {
        "/": () => facts,
        "/relays": () => ({}),
        "/view": end,
        "/traffic": () => null,
        "/cluster": () => [end()],
        "/history": () => [],
      };
      const close = await serveStatus(socket, () => answers);
      const command = name === "render" ? render : explain;
      const { code, err } = await outputOf(command, ...argv, `--source=daemon:${socket}`);
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringMatching(/the daemon at .* closed the connection: .*; retry/),
      });
    },
  );

  it.each([
    [["today"], 'unexpected argument "today"; example: turnout status'],
    [["--soruce=daemon"], "did you mean --source?"],
    [["--source=files:x"], "--source must be daemon, daemon:SOCKET or playground"],
    [["--source=daemons"], '--source must be daemon, daemon:SOCKET or playground, not "daemons"'],
    [["--source=daemon:/nonexistent/sock", "-o", "yaml"], "-o must be text, json or row"],
  ])("reports the usage error in %j", async (argv, answer) => {
    const { code, err } = await outputOf(status, ...argv);
    expect(code).toBe(1);
    expect(err).toContain(answer);
  });

  it("names the nodes of the playground", () => {
    expect(playgroundSocket(7, "node-b")).toBe("/run/turnout-playground/7/node-b.sock");
    expect(() => playgroundSocket(7, "node-z")).toThrow(
      'the playground has no node "node-z"; use --node=node-a or --node=node-b',
    );
  });

  it("reports that no daemon is running", async () => {
    const { code, err } = await outputOf(status, "--source=daemon:/nonexistent/sock");
    expect(code).toBe(1);
    expect(err).toMatch(
      /no daemon is running on this machine: \/nonexistent\/sock does not exist; start one with turnout run/,
    );
  });
});
