// Tests of reading Syncs from the log of a daemon.
import { expect, it } from "vitest";
import { Cluster } from "../src/manifests/cluster.ts";
import { openSyncLog } from "../src/observe/sync-log.ts";
import { logLines } from "../test/support/log-lines.ts";
import { manualClock } from "../test/support/manual-clock.ts";
import { plainRecord } from "../test/support/sync-record.ts";
import { syncIn } from "./daemon.ts";

it("reads a Sync as the daemon logs it", () => {
  const { log, lines } = logLines(manualClock(), { format: "json", verbosity: 2 });
  openSyncLog(log)({ ...plainRecord, family: "ipv6" }, new Cluster("node-a").take());
  expect(lines().flatMap((line) => syncIn(line, "node-a") ?? [])).toEqual([
    { node: "node-a", family: "IPv6", trigger: "change", ms: 12, changedPorts: 1, operations: 5 },
  ]);
});
