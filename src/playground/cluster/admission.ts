// What the API server does to an object before it is stored: defaults, cluster IPs and node ports.
import type { Family } from "../../model/address.ts";
import type { Admit, Release } from "../api/customs.ts";
import { badRequest, Failure, invalid, notFound } from "../api/failure.ts";
import { type ApiObject, type Draft, dig, isMap, scalar } from "../api/object.ts";
import type { Resource } from "../api/resources.ts";
import { check } from "./validation.ts";

/** What there is now: Services have cluster IPs and node ports, and everything lives in a namespace. */
export type Existing = {
  readonly services: () => readonly ApiObject[];
  readonly hasNamespace: (name: string) => boolean;
};

export function admission({ services, hasNamespace }: Existing): Admit {
  return (resource, draft, old, strict) => {
    const { namespace } = draft.metadata ?? {};
    if (old === null && namespace !== undefined && !hasNamespace(namespace))
      throw notFound("namespaces", namespace);
    check(resource.kind, draft, old, strict);
    const tidy = { ...draft, metadata: withoutEmptyMaps(draft.metadata ?? {}) };
    return resource.kind === "Service" ? admitService(tidy, old, services()) : admitOther(resource, tidy);
  };
}

/** No labels and no annotations are the same as none. */
function withoutEmptyMaps(metadata: NonNullable<Draft["metadata"]>): NonNullable<Draft["metadata"]> {
  const isEmpty = (value: unknown) => isMap(value) && Object.keys(value).length === 0;
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => !isEmpty(value)));
}

function admitOther({ kind }: Resource, draft: Draft): Draft {
  const spec = isMap(draft.spec) ? draft.spec : {};
  switch (kind) {
    case "Namespace":
      return { ...draft, status: { phase: "Active" } };
    case "Endpoints":
      throw badRequest("Endpoints are made from EndpointSlices here: write an EndpointSlice instead");
    case "Deployment": {
      const template = isMap(spec.template) ? spec.template : {};
      return {
        ...draft,
        spec: { replicas: 1, ...spec, template: { ...template, spec: podSpec(template.spec) } },
      };
    }
    case "Pod":
      return { ...draft, spec: podSpec(draft.spec) };
    default:
      return draft;
  }
}

/** What kubectl expects to be there. */
function podSpec(given: unknown): Spec {
  const spec = isMap(given) ? given : {};
  const containers = Array.isArray(spec.containers) ? spec.containers.filter(isMap) : [];
  return {
    restartPolicy: "Always",
    securityContext: {},
    ...spec,
    containers: containers.map(({ ports, ...container }) => ({
      ...container,
      ...(Array.isArray(ports)
        ? { ports: ports.filter(isMap).map((port) => ({ protocol: "TCP", ...port })) }
        : {}),
    })),
  };
}

/** What must stay: the namespace everybody has. */
export const mayGo: Release = ({ kind, metadata }) => {
  if (kind === "Namespace" && metadata.name === "default")
    throw new Failure(
      403,
      "Forbidden",
      'namespaces "default" is forbidden: this namespace may not be deleted',
    );
};

type Spec = Record<string, unknown>;

function admitService(draft: Draft, old: ApiObject | null, others: readonly ApiObject[]): Draft {
  const given: Spec = isMap(draft.spec) ? draft.spec : {};
  const before: Spec = old !== null && isMap(old.spec) ? old.spec : {};
  const type = scalar(given.type) || "ClusterIP";
  if (type === "ExternalName" || given.clusterIP === "None") return draft;
  const families = familiesOf(given, before);
  const clusterIPs = clusterIPsOf(given, before, families, others, draft.metadata?.name ?? "");
  const external = type === "NodePort" || type === "LoadBalancer";
  const { sessionAffinityConfig: config, ...rest } = given;
  return {
    ...draft,
    spec: {
      type,
      sessionAffinity: "None",
      internalTrafficPolicy: "Cluster",
      ipFamilyPolicy: families.length === 2 ? "PreferDualStack" : "SingleStack",
      ...(external ? { externalTrafficPolicy: "Cluster" } : {}),
      ...rest,
      ...(given.sessionAffinity === "ClientIP" ? { sessionAffinityConfig: stayOf(config) } : {}),
      ipFamilies: families.map((family) => (family === "ipv4" ? "IPv4" : "IPv6")),
      clusterIP: clusterIPs[0],
      clusterIPs,
      ports: portsOf(given, external, others, draft),
    },
  };
}

/** How long a client stays with a Pod. */
function stayOf(config: unknown): Spec {
  return { clientIP: { timeoutSeconds: dig(config, "clientIP.timeoutSeconds") ?? 10_800 } };
}

function familiesOf(given: Spec, before: Spec): readonly Family[] {
  const named = given.ipFamilies ?? before.ipFamilies;
  if (Array.isArray(named) && named.length > 0)
    return named.map((name) => (name === "IPv6" ? "ipv6" : "ipv4"));
  return given.ipFamilyPolicy === "PreferDualStack" || given.ipFamilyPolicy === "RequireDualStack"
    ? ["ipv4", "ipv6"]
    : ["ipv4"];
}

function clusterIPsOf(
  given: Spec,
  before: Spec,
  families: readonly Family[],
  others: readonly ApiObject[],
  name: string,
): string[] {
  const asked = [given.clusterIPs, given.clusterIP === undefined ? [] : [given.clusterIP], before.clusterIPs];
  const known = asked.find((list) => Array.isArray(list) && list.length > 0) as string[] | undefined;
  const taken = new Set(
    others.flatMap((other) => (dig(other, "spec.clusterIPs") as string[] | undefined) ?? []),
  );
  return families.map((family) => {
    const mine = known?.find((address) => address.includes(":") === (family === "ipv6"));
    return mine ?? freeAddress(family, taken, name);
  });
}

function freeAddress(family: Family, taken: ReadonlySet<string>, name: string): string {
  for (let i = 1; i < 250; i++) {
    const address = family === "ipv4" ? `172.30.1.${i}` : `fd30::1:${i.toString(16)}`;
    if (!taken.has(address)) return address;
  }
  throw invalid("Service", name, "spec.clusterIP: no address is left", "spec.clusterIP");
}

function portsOf(
  given: Spec,
  external: boolean,
  others: readonly ApiObject[],
  { metadata }: Draft,
): unknown[] {
  const ports = Array.isArray(given.ports) ? given.ports.filter(isMap) : [];
  if (ports.length === 0)
    throw invalid("Service", metadata?.name ?? "", "spec.ports: Required value", "spec.ports");
  const isMe = (other: ApiObject) =>
    other.metadata.name === metadata?.name && other.metadata.namespace === (metadata?.namespace ?? "default");
  const taken = new Map(
    others.flatMap((other) =>
      nodePortsOf(other).map((port) => [
        port,
        isMe(other) ? "" : `${other.metadata.namespace}/${other.metadata.name}`,
      ]),
    ),
  );
  const mine = others.find(isMe);
  return ports.map((port) => {
    const protocol = port.protocol ?? "TCP";
    const whole = { ...port, protocol, targetPort: port.targetPort ?? port.port };
    if (!external) return whole;
    const holder = taken.get(port.nodePort as number);
    if (holder !== undefined && holder !== "") {
      const why = `spec.ports[].nodePort: Invalid value: ${scalar(port.nodePort)}: provided port is already allocated by ${holder}`;
      throw invalid("Service", metadata?.name ?? "", why, "spec.ports[].nodePort");
    }
    const nodePort =
      (port.nodePort === 0 ? undefined : port.nodePort) ?? knownNodePort(mine, port) ?? freeNodePort(taken);
    taken.set(nodePort as number, "");
    return { ...whole, nodePort };
  });
}

function knownNodePort(mine: ApiObject | undefined, port: Record<string, unknown>): unknown {
  const ports = dig(mine, "spec.ports");
  return Array.isArray(ports)
    ? ports.filter(isMap).find((each) => each.port === port.port)?.nodePort
    : undefined;
}

function nodePortsOf(service: ApiObject): number[] {
  const ports = dig(service, "spec.ports");
  return Array.isArray(ports)
    ? ports.filter(isMap).flatMap(({ nodePort }) => (typeof nodePort === "number" ? [nodePort] : []))
    : [];
}

function freeNodePort(taken: ReadonlyMap<number, string>): number {
  let port = 30_100;
  while (taken.has(port)) port++;
  return port;
}
