// A client of the API server for `bench api`: follows the cluster like the daemon, and does nothing with it.
import type { Snapshot } from "../../src/model/snapshot.ts";
import { systemClock } from "../../src/observe/clock.ts";
import { apiClient } from "../../src/sources/api/client.ts";
import { resolveConnection } from "../../src/sources/api/connection.ts";
import { acceptHeader } from "../../src/sources/api/encoding/accept.ts";
import { apiSource } from "../../src/sources/api/source.ts";
import { unlimited } from "../../src/sources/api/throttle.ts";
import { realWorld } from "../../src/sources/world.ts";
import { nodeName } from "./cluster.ts";

export const clientKinds = ["JSON", "JSON gzip", "protobuf", "protobuf gzip"] as const;
export type ClientKind = (typeof clientKinds)[number];

/** Ends with the process. */
export async function followAsClient(kind: ClientKind, kubeconfig: string): Promise<void> {
  const world = realWorld(systemClock);
  const connection = await resolveConnection({ kubeconfig }, world);
  const { credentials } = connection;
  const plain = kind.endsWith("gzip") ? {} : { "accept-encoding": "identity" };
  const presenting = {
    ...credentials,
    async current(signal: AbortSignal) {
      const shown = await credentials.current(signal);
      return { ...shown, headers: { ...shown.headers, ...plain } };
    },
  };
  const contentType = kind.startsWith("JSON") ? "application/json" : "";
  const client = apiClient({ ...connection, credentials: presenting }, world, unlimited, "bench", {
    accept: acceptHeader({ contentType, acceptContentTypes: "" }),
  });
  const { signal } = new AbortController();
  const source = apiSource({ client, nodeName, world }, signal);
  let last: Snapshot | null = null;
  for await (const snapshot of source.snapshots(signal)) last = snapshot;
  console.log(last);
}
