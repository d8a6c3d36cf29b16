// A Cluster with objects, and what its Snapshots contain.
import { Cluster } from "../../src/manifests/cluster.ts";
import type { Kind } from "../../src/manifests/objects.ts";
import type { Family } from "../../src/model/address.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";

export const http = "shop/web/tcp/http";

export function cluster(...objects: readonly (readonly [Kind, unknown])[]): Cluster {
  const made = new Cluster("node-a");
  for (const [kind, object] of objects) made.upsert(kind, object);
  return made;
}

export function portKeys(snapshot: Snapshot, family: Family = "ipv4"): string[] {
  return [...snapshot[family].ports.keys()].sort();
}

export function addresses(snapshot: Snapshot, key = http): string[] {
  return snapshot.ipv4.ports.get(key)!.endpoints.map(({ address, port }) => `${address}:${port}`);
}
