// What the log contains about Syncs.
import { expect, it } from "vitest";
import { service } from "../../test/objects.ts";
import { logLines } from "../../test/support/log-lines.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { plainRecord } from "../../test/support/sync-record.ts";
import { Cluster } from "../manifests/cluster.ts";
import type { SyncRecord } from "../sync/record.ts";
import { openSyncLog } from "./sync-log.ts";

const ok = (refused: readonly string[] = []): Partial<SyncRecord> => ({
  outcome: {
    kind: "ok",
    refused: refused.map((object) => ({ kind: "refused", object, field: "", message: "EINVAL" })),
  },
});
const failed: Partial<SyncRecord> = { outcome: { kind: "failed", message: "EBUSY" } };

it("behaviour/1: logs the first Sync of each family, and no later one that succeeds", () => {
  const { sync, lines } = setUp();
  for (const family of ["ipv4", "ipv6", "ipv4", "ipv6"] as const) sync({ ...ok(), family });
  expect(lines()).toHaveLength(2);
  expect(lines()[0]).toMatch(
    /^I.*"First Sync succeeded" family="IPv4" duration="12ms" services=2 servicePorts=3 endpoints=4 operations=5$/,
  );
  expect(lines()[1]).toContain('family="IPv6"');
});

it("behaviour/1: logs every failure, and the recovery once", () => {
  const { sync, lines } = setUp();
  for (const record of [ok(), failed, failed, ok(), ok()]) sync(record);
  expect(lines().slice(1).map(messageOf)).toEqual([
    "E Sync failed; retrying",
    "E Sync failed; retrying",
    "I Sync succeeded after failures",
  ]);
  expect(lines()[3]).toContain("failures=2");
});

it("behaviour/1: logs an object that the kernel refuses once, and when it is accepted", () => {
  const { sync, lines } = setUp();
  for (const record of [ok(), ok(["a"]), ok(["a", "b"]), ok(["b"])]) sync(record);
  expect(lines().slice(1).map(messageOf)).toEqual([
    "E Refused by the kernel",
    "E Refused by the kernel",
    "I No longer refused by the kernel",
  ]);
});

it("behaviour/1: logs a repair of rules that another program changed", () => {
  const { sync, lines } = setUp();
  sync(ok());
  sync({ ...ok(), trigger: "drift", operations: 0 });
  sync({ ...ok(), trigger: "drift", operations: 2 });
  expect(lines().slice(1).map(messageOf)).toEqual(["I Repaired rules that another program changed"]);
});

function setUp() {
  const { log, lines } = logLines(manualClock());
  const logSync = openSyncLog(log);
  const cluster = new Cluster("node-a");
  cluster.replace("Service", [service(), service({}, { metadata: { name: "front" } })]);
  const snapshot = cluster.take();
  const sync = (change: Partial<SyncRecord>) => logSync({ ...plainRecord, ...change }, snapshot);
  return { sync, lines };
}

function messageOf(line: string): string {
  return `${line[0]} ${line.split('"')[1]}`;
}
