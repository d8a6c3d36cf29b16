// Brings the ports of a Service together with the endpoints its slices hold for them.
import { type Endpoint, endpointKey, type ServicePort } from "../model/snapshot.ts";
import type { Slice, SliceEndpoint } from "./endpointslice.ts";

/**
 * The ports of one Service in one family with their Endpoints. Ports are joined by name and protocol alone.
 * `slices` are those of the family in the order of their names, so that the outcome does not depend on arrival.
 */
export function joinEndpoints(
  ports: readonly ServicePort[],
  slices: readonly Slice[],
): readonly ServicePort[] {
  if (ports.length === 0 || slices.length === 0) return ports;
  const claims = claimsByPort(slices);
  return ports.map((port) => {
    const found = claims.get(`${port.protocol}/${port.portName}`);
    return found === undefined ? port : { ...port, endpoints: merged(found) };
  });
}

/** The endpoints of one slice on one of its ports. */
type Claim = { readonly port: number; readonly endpoints: readonly SliceEndpoint[] };

function claimsByPort(slices: readonly Slice[]): ReadonlyMap<string, readonly Claim[]> {
  const claims = new Map<string, Claim[]>();
  for (const { ports, endpoints } of slices) {
    for (const { protocol, portName, port } of ports) {
      const key = `${protocol}/${portName}`;
      const known = claims.get(key);
      if (known === undefined) claims.set(key, [{ port, endpoints }]);
      else known.push({ port, endpoints });
    }
  }
  return claims;
}

/** For the same address and port one that does not terminate wins; of two such, the last. Sorted bytewise. */
function merged(claims: readonly Claim[]): readonly Endpoint[] {
  const byKey = new Map<string, Endpoint>();
  for (const { port, endpoints } of claims) {
    for (const { address, state, serving, terminating, nodeName, zoneHints, nodeHints } of endpoints) {
      const endpoint: Endpoint = { address, port, state, serving, nodeName, zoneHints, nodeHints };
      const key = endpointKey(endpoint);
      if (!terminating || !byKey.has(key)) byKey.set(key, endpoint);
    }
  }
  return [...byKey.keys()].sort().map((key) => byKey.get(key)!);
}
