// Keeps count of Services that take an address of this node or of the API server, Snapshot by Snapshot.
import type { Address, Family } from "../model/address.ts";
import type { Problem } from "../model/problem.ts";
import type { ClusterNode, Snapshot } from "../model/snapshot.ts";
import {
  type InterceptCounts,
  type Interception,
  type Intercepts,
  interceptsIn,
  noIntercepts,
  problemsOf,
  type Surroundings,
} from "../routing/intercepts.ts";
import type { ServerAddress } from "../sources/source.ts";
import { familyLabels } from "./family.ts";

export type KeptIntercepts = {
  readonly arrived: (snapshot: Snapshot) => void;
  /** The address of the API server in the kubeconfig. */
  readonly serverAt: (server: ServerAddress | null) => void;
  /** Of all families. */
  readonly counts: () => InterceptCounts;
  /** For the metric. */
  readonly samples: () => readonly Sample[];
};

type Sample = { readonly labels: { ip_family: string; kind: string; of: string }; readonly value: number };

/** `report` is called for a family whenever what was found in it changed. */
export function keepIntercepts(
  {
    families,
    externalIPsAllowed,
  }: { readonly families: readonly Family[]; readonly externalIPsAllowed: boolean },
  report: (family: Family, problems: readonly Problem[]) => void,
): KeptIntercepts {
  const known = new Map<Family, Intercepts>();
  let server: ServerAddress | null = null;
  let surroundings: Surroundings = { node: [], server, externalIPsAllowed };
  return {
    serverAt(next) {
      server = next;
    },
    arrived(snapshot) {
      const node = addressesOf(snapshot.node);
      // The same object as long as nothing changed: then only changed ServicePorts are visited.
      if (node.join() !== surroundings.node.join() || server !== surroundings.server)
        surroundings = { node, server, externalIPsAllowed };
      for (const family of families) {
        const before = known.get(family) ?? null;
        const now = interceptsIn(before, snapshot[family], surroundings);
        known.set(family, now);
        if (now.found !== before?.found && (before !== null || now.found.size > 0))
          report(family, problemsOf(now));
      }
    },
    counts: () => [...known.values()].map(({ counts }) => counts).reduce(added, noIntercepts),
    samples: () => [...known].flatMap(([family, { counts }]) => samplesOf(family, counts)),
  };
}

function addressesOf(node: ClusterNode | null): readonly Address[] {
  return node === null ? [] : [...node.addresses, ...(node.otherAddresses ?? [])];
}

function added(some: InterceptCounts, more: InterceptCounts): InterceptCounts {
  const keys = Object.keys(some) as (keyof InterceptCounts)[];
  return Object.fromEntries(keys.map((key) => [key, some[key] + more[key]])) as InterceptCounts;
}

function samplesOf(family: Family, counts: InterceptCounts): Sample[] {
  return Object.entries(counts)
    .filter(([, value]) => value > 0)
    .map(([key, value]) => {
      const [kind, of] = key.split(" ") as [Interception["kind"], Interception["of"]];
      return { labels: { ip_family: familyLabels[family], kind, of }, value };
    });
}
