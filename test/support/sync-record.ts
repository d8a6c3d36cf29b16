// The record of a plain Sync that succeeded, for tests of what reads records.
import type { SyncRecord } from "../../src/sync/record.ts";

export const plainRecord: SyncRecord = {
  family: "ipv4",
  trigger: "change",
  startedAt: 1000,
  finishedAt: 1012,
  changedPorts: 1,
  servicePorts: 3,
  endpoints: 4,
  operations: 5,
  bytes: 600,
  readBack: false,
  outcome: { kind: "ok", refused: [] },
};
