// The checks of `turnout doctor`: what each finds, and the exit code that follows.
import { expect, it } from "vitest";
import type { Problem } from "../model/problem.ts";
import type { Status } from "../observe/status/status.ts";
import type { SyncRecord } from "../sync/record.ts";
import { type Check, checksOf, exitCodeOf, type NodeFacts, printChecks } from "./node-checks.ts";

const now = 10_000_000;
const synced = (outcome: SyncRecord["outcome"]) => ({ family: "ipv4", outcome }) as unknown as SyncRecord;
const healthy = { healthy: true, reasons: [], watchAges: { services: 4_000 } };
const status: Status = {
  pid: 1,
  version: "v1.37.1",
  node: "node-a",
  mode: "nftables",
  families: ["ipv4"],
  source: "api",
  ownership: "plain",
  startedAt: now - 60_000,
  waits: null,
  configuration: "",
  syncs: [synced({ kind: "ok", refused: [] })],
  lastSuccess: { ipv4: now - 5_000 },
  compared: { ipv4: now - 30_000 },
  health: healthy,
  problems: [],
  drift: [],
  watches: {},
};
const files: Readonly<Record<string, string>> = {
  "/proc/sys/net/ipv4/ip_forward": "1",
  "/proc/sys/net/netfilter/nf_conntrack_count": "10",
  "/proc/sys/net/netfilter/nf_conntrack_max": "1000",
};

type Changes = { status?: Partial<Status>; files?: Readonly<Record<string, string>> } & Partial<
  Omit<NodeFacts, "status">
>;

function factsWith({ status: changed = {}, files: changedFiles = {}, ...facts }: Changes = {}): NodeFacts {
  const all = { ...files, ...changedFiles };
  return {
    status: { ...status, ...changed },
    now,
    release: "6.12.0",
    obstacle: null,
    missing: [],
    modules: ["nf_tables", "nf_conntrack"],
    loadedModules: new Set(["nf_tables"]),
    targets: [],
    bridges: [],
    read: (file) => all[file] ?? null,
    span: (ms) => `${ms / 1000} s`,
    ...facts,
  };
}

function found(changes: Changes): readonly Check[] {
  return checksOf(factsWith(changes)).filter(({ result }) => result !== "ok");
}

it("prints a line for each check of a node without findings", () => {
  const checks = checksOf(factsWith());
  expect(exitCodeOf(checks)).toBe(0);
  expect(printChecks(status, checks).split("\n")).toEqual([
    "node-a, nftables mode, v1.37.1",
    "ok        daemon     running for 60 s, healthy",
    "ok        kernel     Linux 6.12.0 can run nftables mode",
    "ok        modules    loaded: nf_tables; built in: nf_conntrack",
    "ok        sysctls    0 as configured, forwarding on",
    "ok        conntrack  10 of 1000 entries (1 %)",
    "ok        sync       applied: ipv4 5 s ago",
    "ok        drift      none in the last hour; compared with the kernel 30 s ago",
    "ok        watches    api, last data at most 4 s ago",
    "ok        refused    no object is refused by the kernel",
    "ok        problems   none",
    "",
  ]);
});

const problem = (kind: Problem["kind"]): Problem => ({
  kind,
  object: "Service shop/web",
  field: "",
  message: "no",
});
const drift = { at: now - 9_000, family: "ipv4", differences: 3, what: "nft changed our table" } as const;
const watch = { failing: true, lastError: { message: "ECONNREFUSED", at: now - 2_000 } };
const countFile = "/proc/sys/net/netfilter/nf_conntrack_count";
const target = { file: "/proc/sys/net/netfilter/nf_conntrack_max", value: 4000, when: "below" } as const;
const reason = { kind: "late", family: null, since: now, message: "queued" } as const;

it.each<[string, Changes, 3 | 4, string, string]>([
  ["a kernel", { obstacle: "needs Linux 5.13" }, 4, "kernel", "needs Linux 5.13"],
  ["a module", { missing: ["ip_vs is not loaded"] }, 3, "modules", "ip_vs is not loaded"],
  [
    "bad health",
    { status: { health: { ...healthy, healthy: false, reasons: [reason] } } },
    4,
    "daemon",
    "unhealthy",
  ],
  [
    "a reason",
    { status: { health: { ...healthy, reasons: [reason] } } },
    3,
    "daemon",
    "running for 60 s, healthy, but:",
  ],
  [
    "a start",
    { status: { waits: { for: "the Node", since: now - 1_000, until: null } } },
    3,
    "daemon",
    "starting: waits 1 s for the Node",
  ],
  [
    "a low setting",
    { targets: [target] },
    3,
    "sysctls",
    "net.netfilter.nf_conntrack_max is 1000, must be at least 4000",
  ],
  [
    "no forwarding",
    { files: { "/proc/sys/net/ipv4/ip_forward": "0" } },
    3,
    "sysctls",
    "net.ipv4.ip_forward is 0: packets to pods on other nodes are not forwarded",
  ],
  [
    "a bridge",
    { bridges: ["cni0"] },
    3,
    "sysctls",
    "net.bridge.bridge-nf-call-iptables is not 1: packets between pods on cni0 bypass the rules",
  ],
  [
    "a filling table",
    { files: { [countFile]: "750" } },
    3,
    "conntrack",
    "750 of 1000 entries (75 %): raise conntrack.maxPerCore; turnout doctor flows shows what fills it",
  ],
  [
    "a full table",
    { files: { [countFile]: "950" } },
    4,
    "conntrack",
    "950 of 1000 entries (95 %): new connections are dropped; turnout doctor flows shows what fills it",
  ],
  [
    "a failed Sync",
    { status: { syncs: [synced({ kind: "failed", message: "EBUSY" })] } },
    4,
    "sync",
    "ipv4: the last Sync failed: EBUSY",
  ],
  ["no Sync", { status: { lastSuccess: {} } }, 3, "sync", "no Sync yet: ipv4"],
  ["drift", { status: { drift: [drift] } }, 3, "drift", "9 s ago, ipv4: 3 repaired: nft changed our table"],
  [
    "a watch",
    { status: { watches: { Node: watch } as unknown as Status["watches"] } },
    3,
    "watches",
    "Node: ECONNREFUSED, 2 s ago",
  ],
  ["a refused object", { status: { problems: [problem("refused")] } }, 3, "refused", "Service shop/web: no"],
  ["a Problem", { status: { problems: [problem("conflict")] } }, 3, "problems", "Service shop/web: no"],
])("reports %s", (_, changes, code, name, detail) => {
  const checks = found(changes);
  expect(checks.map((each) => [each.name, each.details[0]])).toEqual([[name, detail]]);
  expect(exitCodeOf(checks)).toBe(code);
});

it("does not report drift of long ago, nor a bridge whose packets are filtered", () => {
  const file = "/proc/sys/net/bridge/bridge-nf-call-iptables";
  const old = { ...drift, at: now - 3_600_000 };
  expect(found({ status: { drift: [old] }, bridges: ["cni0"], files: { [file]: "1" } })).toEqual([]);
});
