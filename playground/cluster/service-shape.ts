// Fits a Service to its type: removes fields of the previous type and sets defaults. Pure.
import { type ApiObject, type Draft, dig, isMap, mapsIn } from "../api/objects/object.ts";

export type Spec = Readonly<Record<string, unknown>>;

export function specOf(object: Draft | ApiObject | null): Spec {
  return isMap(object?.spec) ? object.spec : {};
}

export function portsIn(spec: Spec): Readonly<Record<string, unknown>>[] {
  return mapsIn(spec.ports);
}

/** What the type requires. */
export function needsOf({ type = "ClusterIP", externalIPs, externalTrafficPolicy }: Spec) {
  const nodePorts = type === "NodePort" || type === "LoadBalancer";
  return {
    clusterIP: type !== "ExternalName",
    nodePorts,
    loadBalancer: type === "LoadBalancer",
    outside: nodePorts || (type === "ClusterIP" && Array.isArray(externalIPs) && externalIPs.length > 0),
    healthCheck: type === "LoadBalancer" && externalTrafficPolicy === "Local",
  };
}

/** The draft without zero values, and without unchanged fields that only the previous type allows. */
export function fitted(draft: Draft, old: ApiObject | null): Draft {
  if (!isMap(draft.spec)) return draft;
  const before = specOf(old);
  const given = withoutZeros(draft.spec);
  const needs = needsOf(given);
  const unfit = [
    ...(needs.clusterIP
      ? []
      : ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]),
    ...(needs.outside ? [] : ["externalTrafficPolicy"]),
    ...(needs.loadBalancer ? [] : ["allocateLoadBalancerNodePorts", "loadBalancerClass"]),
    ...(needs.healthCheck ? [] : ["healthCheckNodePort"]),
  ].filter((name) => JSON.stringify(given[name]) === JSON.stringify(before[name]));
  const spec = Object.fromEntries(Object.entries(given).filter(([name]) => !unfit.includes(name)));
  if (!Array.isArray(spec.ports)) return { ...draft, spec };
  const known = new Set(needs.nodePorts ? [] : portsIn(before).map(({ nodePort }) => nodePort));
  const ports = spec.ports.map((port: unknown) => {
    if (!isMap(port)) return port;
    const { nodePort, ...rest } = withoutZeros(port);
    return nodePort === undefined || known.has(nodePort) ? rest : { ...rest, nodePort };
  });
  return { ...draft, spec: { ...spec, ports } };
}

/** With defaults, except addresses and node ports. */
export function completed(given: Spec): Spec {
  const needs = needsOf(given);
  const { sessionAffinityConfig, ...rest } = given;
  const seconds = dig(sessionAffinityConfig, "clientIP.timeoutSeconds") ?? 10_800;
  return {
    type: "ClusterIP",
    sessionAffinity: "None",
    ...(needs.clusterIP ? { internalTrafficPolicy: "Cluster" } : {}),
    ...(needs.outside ? { externalTrafficPolicy: "Cluster" } : {}),
    ...(needs.loadBalancer ? { allocateLoadBalancerNodePorts: true } : {}),
    ...rest,
    ...(given.sessionAffinity === "ClientIP"
      ? { sessionAffinityConfig: { clientIP: { timeoutSeconds: seconds } } }
      : {}),
    ...(Array.isArray(given.ports)
      ? { ports: portsIn(given).map((port) => ({ protocol: "TCP", targetPort: port.port, ...port })) }
      : {}),
  };
}

/** Fields whose zero value differs from absent. */
const keptZeros = new Set(["allocateLoadBalancerNodePorts", "port"]);

function withoutZeros(map: Spec): Spec {
  const isZero = (value: unknown) =>
    value === null ||
    value === "" ||
    value === 0 ||
    value === false ||
    (Array.isArray(value) && value.length === 0) ||
    (isMap(value) && Object.keys(value).length === 0);
  return Object.fromEntries(
    Object.entries(map).filter(([name, value]) => keptZeros.has(name) || !isZero(value)),
  );
}
