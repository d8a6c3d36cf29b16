// Brings the ports of a Service together with the endpoints its slices hold for them.
import { compareEndpoints, type Endpoint, type Protocol, type ServicePort } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";

/**
 * The ports of one Service in one family with their Endpoints. Ports are joined by name and protocol alone.
 * `slices` stand in the order of their names, so that the outcome does not depend on arrival; other families' are ignored.
 */
export function joinEndpoints(
  ports: readonly ServicePort[],
  slices: readonly Slice[],
): readonly ServicePort[] {
  if (ports.length === 0 || slices.length === 0) return ports;
  const claims = claimsByName(slices);
  return ports.map((port) => {
    const found =
      claims
        .get(port.portName)
        ?.filter(({ slice, protocol }) => slice.family === port.family && protocol === port.protocol) ?? [];
    return found.length === 0 ? port : { ...port, endpoints: merged(found) };
  });
}

/** What one slice says of one of its ports. */
type Claim = { readonly slice: Slice; readonly protocol: Protocol; readonly port: number };

/** By the name of the port alone, which needs no key to be made; hardly ever do two protocols share one. */
function claimsByName(slices: readonly Slice[]): ReadonlyMap<string, readonly Claim[]> {
  const claims = new Map<string, Claim[]>();
  for (const slice of slices) {
    for (const { portName, protocol, port } of slice.ports) {
      const claim = { slice, protocol, port };
      const known = claims.get(portName);
      if (known === undefined) claims.set(portName, [claim]);
      else known.push(claim);
    }
  }
  return claims;
}

/** For the same address and port one that does not terminate wins; of two such, the last. Sorted bytewise. */
function merged(claims: readonly Claim[]): readonly Endpoint[] {
  const only = claims.length === 1 ? claims[0]! : null;
  if (only !== null && isOnPort(only) && isSorted(only.slice.endpoints)) return only.slice.endpoints;
  const all: Endpoint[] = [];
  const terminating = new Set<Endpoint>();
  for (const { slice, port } of claims) {
    const first = all.length;
    for (const endpoint of slice.endpoints)
      all.push(endpoint.port === port ? endpoint : { ...endpoint, port });
    for (const index of slice.terminating) terminating.add(all[first + index]!);
  }
  // Sorting is stable: entries for the same address and port stay in the order of their slices.
  const sorted = all.toSorted(compareEndpoints);
  return isSorted(sorted) ? sorted : withoutDuplicates(sorted, terminating);
}

function isOnPort({ slice, port }: Claim): boolean {
  return slice.endpoints[0]?.port === port;
}

/** And without duplicates. */
function isSorted(endpoints: readonly Endpoint[]): boolean {
  for (let i = 1; i < endpoints.length; i++)
    if (compareEndpoints(endpoints[i - 1]!, endpoints[i]!) >= 0) return false;
  return true;
}

function withoutDuplicates(
  sorted: readonly Endpoint[],
  terminating: ReadonlySet<Endpoint>,
): readonly Endpoint[] {
  const kept: Endpoint[] = [];
  for (const endpoint of sorted) {
    const last = kept.at(-1);
    if (last === undefined || compareEndpoints(last, endpoint) !== 0) kept.push(endpoint);
    else if (!terminating.has(endpoint)) kept[kept.length - 1] = endpoint;
  }
  return kept;
}
