// What leads from one ServicePort to another, as compact JSON: only the fields and the Endpoints that differ.
import { type PortJson, portFromJson, portToJson } from "../explain/port-json.ts";
import type { Family } from "../model/address.ts";
import { same } from "../model/same.ts";
import { compareEndpoints, type Endpoint, type PortKey, type ServicePort } from "../model/snapshot.ts";

/** null: there is none. whole: all of it. Otherwise the fields that differ, and the Endpoints to take out and to put in. */
export type PortPatch =
  | null
  | { readonly whole: PortJson }
  | {
      readonly set?: Partial<Pick<ServicePort, PatchedField>>;
      readonly out?: readonly Place[];
      readonly put?: readonly Endpoint[];
    };

/** Endpoints are identified by address and port. */
type Place = readonly [Endpoint["address"], Endpoint["port"]];

/** The others follow from the key, or have a form of their own. */
type PatchedField = Exclude<
  keyof ServicePort,
  "key" | "family" | "service" | "namespace" | "name" | "portName" | "protocol" | "endpoints"
>;

const patchedFields = [
  "clusterIP",
  "port",
  "nodePort",
  "externalIPs",
  "loadBalancerIPs",
  "sourceRanges",
  "affinity",
  "internalPolicy",
  "externalPolicy",
  "healthCheckNodePort",
] as const satisfies readonly PatchedField[];

/** `undefined`: nothing differs. Costs as much as the ServicePort has Endpoints. */
export function patchOf(from: ServicePort | undefined, to: ServicePort | undefined): PortPatch | undefined {
  if (from === to) return undefined;
  if (to === undefined) return null;
  if (from === undefined) return { whole: portToJson(to) };
  const set = fieldsThatDiffer(from, to);
  const { out, put } = endpointsThatDiffer(from.endpoints, to.endpoints);
  if (set === null && out.length === 0 && put.length === 0) return undefined;
  return {
    ...(set === null ? {} : { set }),
    ...(out.length === 0 ? {} : { out }),
    ...(put.length === 0 ? {} : { put }),
  };
}

export function patched(
  from: ServicePort | undefined,
  patch: PortPatch,
  family: Family,
  key: PortKey,
): ServicePort | undefined {
  if (patch === null) return undefined;
  if ("whole" in patch) return portFromJson(patch.whole, family);
  if (from === undefined) throw new Error(`cannot patch ${key}: it does not exist`);
  const { set, out = [], put = [] } = patch;
  const endpoints =
    out.length === 0 && put.length === 0 ? from.endpoints : replaced(from.endpoints, out, put);
  return { ...from, ...set, endpoints };
}

function fieldsThatDiffer(
  from: ServicePort,
  to: ServicePort,
): Partial<Pick<ServicePort, PatchedField>> | null {
  let set: Record<string, unknown> | null = null;
  for (const field of patchedFields) {
    if (same(from[field], to[field])) continue;
    set ??= {};
    set[field] = to[field];
  }
  return set;
}

/** Both lists are sorted and without duplicates. */
function endpointsThatDiffer(
  from: readonly Endpoint[],
  to: readonly Endpoint[],
): { readonly out: Place[]; readonly put: Endpoint[] } {
  const out: Place[] = [];
  const put: Endpoint[] = [];
  if (from === to) return { out, put };
  let i = 0;
  let j = 0;
  while (i < from.length || j < to.length) {
    const [old, now] = [from[i], to[j]];
    const order = old === undefined ? 1 : now === undefined ? -1 : compareEndpoints(old, now);
    if (order < 0) out.push([old!.address, old!.port]);
    else if (order > 0 || !same(old, now)) put.push(now!);
    if (order <= 0) i++;
    if (order >= 0) j++;
  }
  return { out, put };
}

/** Sorted again. */
function replaced(
  endpoints: readonly Endpoint[],
  out: readonly Place[],
  put: readonly Endpoint[],
): readonly Endpoint[] {
  const text = (address: string, port: number) => `${address} ${port}`;
  const gone = new Set([
    ...out.map(([address, port]) => text(address, port)),
    ...put.map(({ address, port }) => text(address, port)),
  ]);
  const kept = endpoints.filter(({ address, port }) => !gone.has(text(address, port)));
  return [...kept, ...put].sort(compareEndpoints);
}
