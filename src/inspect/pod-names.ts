// Names of the pods behind endpoints, from the EndpointSlices of a few Services; the daemon does not keep them.
import { parseAddress } from "../model/address.ts";
import { SourceError } from "../sources/source.ts";
import { getFromApi, type Target } from "./target.ts";

/** Most Services whose slices are read: one request each. */
const mostServices = 20;

type Slice = {
  readonly endpoints?: readonly {
    readonly addresses?: readonly string[];
    readonly targetRef?: { readonly kind?: string; readonly namespace?: string; readonly name?: string };
  }[];
};

export type PodNames = {
  /** `namespace/name` by address. */
  readonly names: ReadonlyMap<string, string>;
  /** Why names are missing; null when none are. */
  readonly problem: string | null;
};

/** `services`: `namespace/name` of each. */
export async function podNamesOf(
  services: ReadonlySet<string>,
  target: Target,
  signal: AbortSignal,
): Promise<PodNames> {
  const names = new Map<string, string>();
  if (target.spec.kind !== "api") return { names, problem: "files contain no pods" };
  const some = [...services].slice(0, mostServices);
  try {
    for (const service of some)
      for (const [address, name] of await namesOfService(service, target, signal)) names.set(address, name);
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return { names, problem: error.message };
  }
  const rest = services.size - some.length;
  return { names, problem: rest > 0 ? `only those of ${mostServices} Services are read` : null };
}

async function namesOfService(
  service: string,
  target: Target,
  signal: AbortSignal,
): Promise<readonly (readonly [string, string])[]> {
  const [namespace, name] = service.split("/") as [string, string];
  const label = encodeURIComponent(`kubernetes.io/service-name=${name}`);
  const path = `/apis/discovery.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/endpointslices`;
  const list = (await getFromApi(target, `${path}?labelSelector=${label}`, signal)) as {
    items?: readonly Slice[];
  } | null;
  return (list?.items ?? []).flatMap(({ endpoints = [] }) =>
    endpoints.flatMap(({ addresses = [], targetRef }) =>
      targetRef?.kind === "Pod" && targetRef.name !== undefined
        ? addresses.flatMap((text) => {
            const address = parseAddress(text);
            return address === null
              ? []
              : [[address, `${targetRef.namespace ?? namespace}/${targetRef.name}`] as const];
          })
        : [],
    ),
  );
}
