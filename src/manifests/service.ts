// Reads the ServicePorts of a Service in both families, still without Endpoints.
import { type Address, type Cidr, type Family, families, prefixLength } from "../model/address.ts";
import { same } from "../model/same.ts";
import { type Affinity, portKey, type ServicePort, type TrafficPolicy } from "../model/snapshot.ts";
import { addressesOf, type ByFamily, cidrsOf, emptyByFamily } from "./addresses.ts";
import { clusterIPsOf } from "./clusterip.ts";
import type { Identity } from "./identity.ts";
import { labels, type Raw } from "./objects.ts";
import { type Port, servicePortsOf } from "./ports.ts";
import {
  addProblem,
  fields,
  hasLegalNames,
  integer,
  list,
  type Parsed,
  parsed,
  portNumber,
  type Report,
  reportOn,
  text,
  texts,
} from "./read.ts";

/** The ServicePorts of one Service; parsed with empty `endpoints`, which come from the slices. */
export type Service = ByFamily<readonly ServicePort[]>;

/** Whether they are the same but for the endpoints. */
export function isSameService(a: Service | undefined, b: Service | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return families.every((family) => same(a[family].map(unjoined), b[family].map(unjoined)));
}

function unjoined(port: ServicePort): ServicePort {
  return port.endpoints.length === 0 ? port : { ...port, endpoints: none };
}

/** Value null: not for this proxy (another proxy's, headless, ExternalName), or refused. */
export function parseService(who: Identity, object: unknown): Parsed<Service> {
  const report = reportOn(who);
  const raw = fields(report, object, "", "");
  if (!hasLegalNames(report) || isOfAnotherProxy(report, raw)) {
    return parsed<Service>(report, null);
  }
  const spec = fields(report, raw.spec, "", "spec");
  const type = text(report, spec.type, "spec", "type") || "ClusterIP";
  const clusterIP = text(report, spec.clusterIP, "spec", "clusterIP");
  if (!hasAddress(report, type, clusterIP)) return parsed<Service>(report, null);
  const ports = servicePortsOf(report, spec);
  const status = fields(report, raw.status, "", "status");
  const common = commonOf(report, type, clusterIP, spec, status, ports.length);
  return parsed(report, {
    ipv4: portsIn("ipv4", who, ports, common),
    ipv6: portsIn("ipv6", who, ports, common),
  });
}

function portsIn(
  family: Family,
  who: Identity,
  ports: readonly Port[],
  common: Common,
): readonly ServicePort[] {
  const clusterIP = common.clusterIPs[family];
  return clusterIP === null ? none : ports.map((port) => servicePort(who, family, clusterIP, port, common));
}

function servicePort(
  who: Identity,
  family: Family,
  clusterIP: Address,
  port: Port,
  common: Common,
): ServicePort {
  return {
    key: portKey(who.key, port.protocol, port.portName),
    family,
    service: who.key,
    namespace: who.namespace,
    name: who.name,
    portName: port.portName,
    protocol: port.protocol,
    clusterIP,
    port: port.port,
    nodePort: port.nodePort,
    externalIPs: common.externalIPs[family],
    loadBalancerIPs: common.loadBalancerIPs[family],
    sourceRanges: common.sourceRanges[family],
    affinity: common.affinity,
    internalPolicy: common.internalPolicy,
    externalPolicy: common.externalPolicy,
    healthCheckNodePort: common.healthCheckNodePort,
    endpoints: none,
  };
}

const none: readonly never[] = [];

/** What all ports of a Service have in common. */
type Common = {
  readonly clusterIPs: ByFamily<Address | null>;
  readonly externalIPs: ByFamily<readonly Address[]>;
  readonly loadBalancerIPs: ByFamily<readonly Address[]>;
  readonly sourceRanges: ByFamily<readonly Cidr[]>;
  readonly affinity: Affinity;
  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  readonly healthCheckNodePort: number;
};

function isOfAnotherProxy(report: Report, raw: Raw): boolean {
  const metadata = fields(report, raw.metadata, "", "metadata");
  return fields(report, metadata.labels, "metadata", "labels")[labels.proxyName] !== undefined;
}

/** The singular field decides, even when `clusterIPs` is set. */
function hasAddress(report: Report, type: string, clusterIP: string): boolean {
  if (clusterIP === "None" || type === "ExternalName") return false;
  if (clusterIP === "")
    addProblem(report, "ignored", "spec.clusterIP", "is empty, so there is no address to serve");
  return clusterIP !== "";
}

function commonOf(
  report: Report,
  type: string,
  clusterIP: string,
  spec: Raw,
  status: Raw,
  ports: number,
): Common {
  const externalIPs = texts(report, spec.externalIPs, "spec", "externalIPs");
  const externalPolicy = externalPolicyOf(report, spec, type, externalIPs.length > 0);
  const internalPolicy = text(report, spec.internalTrafficPolicy, "spec", "internalTrafficPolicy");
  return {
    clusterIPs: clusterIPsOf(report, spec, clusterIP),
    externalIPs: servable(
      report,
      addressesOf(report, externalIPs, "spec.externalIPs"),
      ports,
      "spec.externalIPs",
    ),
    loadBalancerIPs: servable(
      report,
      loadBalancerIPsOf(report, status),
      ports,
      "status.loadBalancer.ingress",
    ),
    sourceRanges: sourceRangesOf(report, spec, ports),
    affinity: affinityOf(report, spec),
    internalPolicy: internalPolicy === "Local" ? "local" : "cluster",
    externalPolicy,
    healthCheckNodePort: healthCheckNodePortOf(report, spec, type, externalPolicy),
  };
}

function loadBalancerIPsOf(report: Report, status: Raw): ByFamily<readonly Address[]> {
  const loadBalancer = fields(report, status.loadBalancer, "status", "loadBalancer");
  const ingresses = list(report, loadBalancer.ingress, "status.loadBalancer", "ingress");
  if (ingresses.length === 0) return emptyByFamily;
  const addresses = ingresses.map((item, i) => {
    const at = `status.loadBalancer.ingress[${i}]`;
    const ingress = fields(report, item, "", at);
    const mode = text(report, ingress.ipMode, at, "ipMode");
    const ip = text(report, ingress.ip, at, "ip");
    return mode === "" || mode === "VIP" ? ip : "";
  });
  return addressesOf(report, addresses, "status.loadBalancer.ingress");
}

/** Every port has every address: an object of 100 kB could fill the memory. */
export const mostPlaces = 200_000;

/** As many addresses as can be served with so many ports. */
function servable(
  report: Report,
  addresses: ByFamily<readonly Address[]>,
  ports: number,
  field: string,
): ByFamily<readonly Address[]> {
  const most = Math.floor(mostPlaces / Math.max(1, ports));
  if (families.every((family) => addresses[family].length <= most)) return addresses;
  const message = `has more than ${most} addresses of a family, for ${ports} ports; only the first ${most} are served`;
  addProblem(report, "invalid-range", field, message);
  return { ipv4: addresses.ipv4.slice(0, most), ipv6: addresses.ipv6.slice(0, most) };
}

/** Empty means every client: so does a range that covers its whole family, and so do ranges of the other family alone. */
function sourceRangesOf(report: Report, spec: Raw, ports: number): ByFamily<readonly Cidr[]> {
  const field = "loadBalancerSourceRanges";
  const written = texts(report, spec[field], "spec", field);
  if (written.length === 0) return emptyByFamily;
  const most = Math.min(mostSourceRanges, Math.floor(mostPlaces / Math.max(1, ports)));
  if (written.length > most) {
    const message = `has ${written.length} entries, more than ${most}; the load-balancer addresses drop all traffic`;
    addProblem(report, "invalid-range", `spec.${field}`, message);
    return noClient;
  }
  const ranges = cidrsOf(report, written, `spec.${field}`);
  return { ipv4: unlessAll(ranges.ipv4), ipv6: unlessAll(ranges.ipv6) };
}

/** One Service must not keep a node busy for seconds. */
export const mostSourceRanges = 100_000;

/** No packet to a load balancer comes from these addresses: the ranges match no client, in every mode. */
const noClient: ByFamily<readonly Cidr[]> = { ipv4: ["0.0.0.0/32"], ipv6: ["::/128"] };

function unlessAll(ranges: readonly Cidr[]): readonly Cidr[] {
  return ranges.some((range) => prefixLength(range) === 0) ? [] : ranges;
}

const defaultAffinitySeconds = 10_800;

function affinityOf(report: Report, spec: Raw): Affinity {
  const config = fields(report, spec.sessionAffinityConfig, "spec", "sessionAffinityConfig");
  const at = "spec.sessionAffinityConfig.clientIP";
  const clientIP = fields(report, config.clientIP, "spec.sessionAffinityConfig", "clientIP");
  const seconds = integer(report, clientIP.timeoutSeconds, at, "timeoutSeconds");
  if (text(report, spec.sessionAffinity, "spec", "sessionAffinity") !== "ClientIP") return null;
  if (seconds === null) return { seconds: defaultAffinitySeconds };
  if (seconds > 0 && seconds <= 86_400) return { seconds };
  const message = `is ${seconds}, not between 1 and 86400; ${defaultAffinitySeconds} is used`;
  addProblem(report, "invalid-range", `${at}.timeoutSeconds`, message);
  return { seconds: defaultAffinitySeconds };
}

/** Local counts only where traffic can come from outside: node ports, load balancers, external IPs of any family. */
function externalPolicyOf(report: Report, spec: Raw, type: string, hasExternalIPs: boolean): TrafficPolicy {
  const policy = text(report, spec.externalTrafficPolicy, "spec", "externalTrafficPolicy");
  if (policy !== "Local") return "cluster";
  return type === "LoadBalancer" || type === "NodePort" || (type === "ClusterIP" && hasExternalIPs)
    ? "local"
    : "cluster";
}

function healthCheckNodePortOf(
  report: Report,
  spec: Raw,
  type: string,
  externalPolicy: TrafficPolicy,
): number {
  const given = integer(report, spec.healthCheckNodePort, "spec", "healthCheckNodePort") ?? 0;
  if (externalPolicy !== "local" || type !== "LoadBalancer") return 0;
  if (given === 0) {
    const message = "is missing; load balancers cannot ask this node for local endpoints";
    addProblem(report, "missing-field", "spec.healthCheckNodePort", message);
    return 0;
  }
  return portNumber(report, given, "spec", "healthCheckNodePort") ?? 0;
}
