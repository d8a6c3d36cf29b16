// Allocates cluster IPs, node ports and the health-check port of a Service. Pure.
import { type Family, families } from "../../src/model/address.ts";
import { invalid } from "../api/http/failure.ts";
import { type ApiObject, type Draft, isMap, scalar } from "../api/objects/object.ts";
import { completed, fitted, needsOf, portsIn, type Spec, specOf } from "./service-shape.ts";

/** `draft` has been validated. */
export function admitService(draft: Draft, old: ApiObject | null, services: readonly ApiObject[]): Draft {
  const isMe = ({ metadata: { name, namespace } }: ApiObject) =>
    name === draft.metadata?.name && namespace === (draft.metadata?.namespace ?? "default");
  const others = services.filter((other) => !isMe(other));
  const [given, before] = [completed(specOf(fitted(draft, old))), specOf(old)];
  const status = old === null ? { status: { loadBalancer: {} } } : {};
  const name = draft.metadata?.name ?? "";
  return {
    ...status,
    ...draft,
    spec: { ...given, ...addressesOf(given, before, others, name), ...portsOf(given, before, others, name) },
  };
}

function addressesOf(given: Spec, before: Spec, others: readonly ApiObject[], name: string): Spec {
  if (!needsOf(given).clusterIP) return {};
  const { ipFamilies, ipFamilyPolicy } = familiesOf(given, before);
  if (given.clusterIP === "None")
    return { clusterIP: "None", clusterIPs: ["None"], ipFamilies: ipFamilies.map(nameOf), ipFamilyPolicy };
  const taken = takenAddresses(others);
  const requested = [given.clusterIPs, given.clusterIP, before.clusterIPs].flat().map(scalar);
  const clusterIPs = ipFamilies.map((family) => {
    const mine = requested.find((address) => address !== "" && familyOfAddress(address) === family);
    return mine ?? freeAddress(family, taken, name);
  });
  const twice = clusterIPs.find((address) => taken.has(address));
  if (twice !== undefined)
    throw invalid(
      "Service",
      name,
      `Invalid value: ${JSON.stringify(twice)}: provided IP is already allocated to ${taken.get(twice)}`,
      "spec.clusterIPs",
    );
  return { clusterIP: clusterIPs[0], clusterIPs, ipFamilies: ipFamilies.map(nameOf), ipFamilyPolicy };
}

function nameOf(family: Family): string {
  return family === "ipv4" ? "IPv4" : "IPv6";
}

function familyOfAddress(address: string): Family {
  return address.includes(":") ? "ipv6" : "ipv4";
}

/** The families by policy; the first is the requested one, or the current one. */
function familiesOf(given: Spec, before: Spec): { ipFamilies: Family[]; ipFamilyPolicy: string } {
  const addresses = [given.clusterIPs ?? given.clusterIP ?? []].flat().map(scalar);
  const named = Array.isArray(given.ipFamilies) ? given.ipFamilies : (before.ipFamilies as unknown[]);
  const requested = [
    ...(named ?? []).map((name): Family => (name === "IPv6" ? "ipv6" : "ipv4")),
    ...addresses.filter((address) => address !== "None").map(familyOfAddress),
  ];
  const wanted = [...new Set([...requested, "ipv4" as const, ...families])];
  // The endpoints of a headless Service without a selector can be of any family.
  const open = given.clusterIP === "None" && !isMap(given.selector) && requested.length === 0;
  const policy =
    scalar(given.ipFamilyPolicy ?? before.ipFamilyPolicy) || (open ? "RequireDualStack" : "SingleStack");
  return { ipFamilies: policy === "SingleStack" ? wanted.slice(0, 1) : wanted, ipFamilyPolicy: policy };
}

function takenAddresses(others: readonly ApiObject[]): Map<string, string> {
  return new Map(
    others.flatMap((other) =>
      [specOf(other).clusterIPs ?? []].flat().map((address) => [scalar(address), titleOf(other)]),
    ),
  );
}

function titleOf({ metadata: { namespace, name } }: ApiObject): string {
  return `${namespace}/${name}`;
}

function freeAddress(family: Family, taken: ReadonlyMap<string, string>, name: string): string {
  for (let i = 1; i < 250; i++) {
    const address = family === "ipv4" ? `172.30.1.${i}` : `fd30::1${i.toString(16).padStart(2, "0")}`;
    if (!taken.has(address)) return address;
  }
  throw invalid("Service", name, "Invalid value: no address is left", "spec.clusterIP");
}

function portsOf(given: Spec, before: Spec, others: readonly ApiObject[], name: string): Spec {
  const { nodePorts, healthCheck } = needsOf(given);
  const pool = poolOf(others, name);
  const ports = portsIn(given);
  for (const [i, { nodePort }] of ports.entries()) {
    const holder = pool.holderOf(nodePort);
    if (holder === undefined) continue;
    const why = `Invalid value: ${scalar(nodePort)}: provided port is already allocated by ${holder}`;
    throw invalid("Service", name, why, `spec.ports[${i}].nodePort`);
  }
  for (const { nodePort } of ports) if (nodePort !== undefined) pool.take(nodePort);
  const wanted = nodePorts && given.allocateLoadBalancerNodePorts !== false;
  const had = new Map(portsIn(before).map((port) => [portId(port), port.nodePort]));
  const whole = (port: Spec) =>
    wanted ? { ...port, nodePort: port.nodePort ?? pool.take(had.get(portId(port))) } : port;
  return {
    ...(ports.length === 0 ? {} : { ports: ports.map(whole) }),
    ...(healthCheck
      ? { healthCheckNodePort: given.healthCheckNodePort ?? pool.take(before.healthCheckNodePort) }
      : {}),
  };
}

function portId({ port, protocol }: Spec): string {
  return `${scalar(port)}/${scalar(protocol)}`;
}

const lastNodePort = 32_767;

/** The allocated node ports. `take` returns the requested port if it is free, else the next free one. */
function poolOf(others: readonly ApiObject[], name: string) {
  const taken = new Map<unknown, string>();
  for (const other of others) {
    const { healthCheckNodePort, ...spec } = specOf(other);
    for (const port of [healthCheckNodePort, ...portsIn(spec).map(({ nodePort }) => nodePort)])
      if (port !== undefined) taken.set(port, titleOf(other));
  }
  let next = 30_100;
  const free = () => {
    while (taken.has(next)) next++;
    if (next > lastNodePort)
      throw invalid("Service", name, "Invalid value: no node port is left", "spec.ports");
    return next;
  };
  return {
    holderOf: (port: unknown) => taken.get(port),
    take(requested: unknown): unknown {
      const port = requested === undefined || taken.has(requested) ? free() : requested;
      taken.set(port, "this Service");
      return port;
    },
  };
}
