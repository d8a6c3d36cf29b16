// Joins the ports of a Service with the endpoints in its slices.
import { compareEndpoints, type Endpoint, type ServicePort } from "../model/snapshot.ts";
import type { Slice } from "./endpointslice.ts";
import type { SlicePort } from "./ports.ts";

/**
 * The ports of one Service in one family with their Endpoints, whichever they had before. Ports are joined by name and
 * protocol alone.
 * `slices` are in the order of their names, so that the result does not depend on arrival; other families' are ignored.
 */
export function joinEndpoints(
  ports: readonly ServicePort[],
  slices: readonly Slice[],
): readonly ServicePort[] {
  if (ports.length === 0) return ports;
  // Most Services have one port, which is found sooner than all are sorted by name.
  if (ports.length === 1) return [joined(ports[0]!, claimsOn(ports[0]!, slices))];
  const byName = claimsByName(slices);
  return ports.map((port) =>
    joined(port, byName.get(port.portName)?.filter((claim) => isOn(port, claim.slice, claim.port)) ?? []),
  );
}

/** One port of one slice. */
type Claim = { readonly slice: Slice; readonly port: SlicePort };

function claimsOn(wanted: ServicePort, slices: readonly Slice[]): readonly Claim[] {
  const claims: Claim[] = [];
  for (const slice of slices)
    for (const port of slice.ports) if (isOn(wanted, slice, port)) claims.push({ slice, port });
  return claims;
}

function isOn(wanted: ServicePort, { family }: Slice, { portName, protocol }: SlicePort): boolean {
  return family === wanted.family && portName === wanted.portName && protocol === wanted.protocol;
}

/** By the name of the port alone, which needs no key to be made; hardly ever do two protocols share one. */
function claimsByName(slices: readonly Slice[]): ReadonlyMap<string, readonly Claim[]> {
  const claims = new Map<string, Claim[]>();
  for (const slice of slices) {
    for (const port of slice.ports) {
      const known = claims.get(port.portName);
      if (known === undefined) claims.set(port.portName, [{ slice, port }]);
      else known.push({ slice, port });
    }
  }
  return claims;
}

function joined(port: ServicePort, claims: readonly Claim[]): ServicePort {
  const endpoints = claims.length === 0 ? none : merged(claims);
  return port.endpoints === endpoints ? port : { ...port, endpoints };
}

const none: readonly Endpoint[] = [];

/** For the same address and port one that does not terminate wins; of two such, the last. Sorted bytewise. */
function merged(claims: readonly Claim[]): readonly Endpoint[] {
  const only = claims.length === 1 ? claims[0]! : null;
  if (only !== null && isOnPort(only) && isSorted(only.slice.endpoints)) return only.slice.endpoints;
  const all: Endpoint[] = [];
  const terminating = new Set<Endpoint>();
  for (const { slice, port } of claims) {
    const first = all.length;
    for (const endpoint of slice.endpoints)
      all.push(endpoint.port === port.port ? endpoint : { ...endpoint, port: port.port });
    for (const index of slice.terminating) terminating.add(all[first + index]!);
  }
  // Sorting is stable: entries for the same address and port stay in the order of their slices.
  const sorted = all.toSorted(compareEndpoints);
  return isSorted(sorted) ? sorted : withoutDuplicates(sorted, terminating);
}

function isOnPort({ slice, port }: Claim): boolean {
  return slice.endpoints[0]?.port === port.port;
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
