// Which addresses and networks are allowed: servers, NodePorts, and how local traffic is recognised.
import { familyOf, parseAddress, parseCidr } from "../../model/address.ts";
import type { ProxyConfig } from "../config.ts";
import type { Path } from "../file/fields.ts";
import { splitHostPort } from "../units/host-port.ts";
import { duplicate, type FieldError, invalid, unsupported } from "./field-error.ts";

const root = "KubeProxyConfiguration";

export function validateAddresses({
  bindAddress,
  healthzBindAddress,
  metricsBindAddress,
}: ProxyConfig): FieldError[] {
  const bind = parseAddress(bindAddress) === null;
  const detail = `must be an IP address, like 192.168.0.2 or fd00::2${bindAddress.startsWith("[") ? ", without brackets" : ""}`;
  return [
    ...(bind ? [invalid(`${root}.BindAddress`, "bindAddress", bindAddress, detail)] : []),
    ...(healthzBindAddress === ""
      ? []
      : hostPort(`${root}.HealthzBindAddress`, "healthzBindAddress", healthzBindAddress)),
    ...hostPort(`${root}.MetricsBindAddress`, "metricsBindAddress", metricsBindAddress),
  ];
}

function hostPort(path: string, setting: Path, text: string): FieldError[] {
  const parts = splitHostPort(text);
  if (parts === null)
    return [invalid(path, setting, text, "must be IP:port, like 0.0.0.0:10256 or [::]:10256")];
  const port = /^[-+]?[0-9]+$/.test(parts.port) ? Number(parts.port) : 0;
  return [
    ...(parseAddress(parts.host) === null
      ? [invalid(path, setting, parts.host, "must be a valid IP address, not a name")]
      : []),
    ...(port < 1 || port > 65_535
      ? [invalid(path, setting, parts.port, "must be a valid port, 1 to 65535")]
      : []),
  ];
}

const nodePortKeywords = ["primary", "localhost", "all"];

export function validateNodePortAddresses(items: readonly string[]): FieldError[] {
  return items.flatMap((item, i) => {
    const path = `${root}.NodePortAddresses[${i}]`;
    if (nodePortKeywords.includes(item)) {
      return items.indexOf(item) < i ? [duplicate(path, "nodePortAddresses", item)] : [];
    }
    if (parseCidr(item) !== null) return [];
    const address = parseAddress(item);
    const advice =
      address === null ? "" : `; for one address write ${address}/${familyOf(address) === "ipv4" ? 32 : 128}`;
    const detail = `must be a CIDR or one of the keywords 'primary', 'localhost', 'all'${advice}`;
    return [invalid(path, "nodePortAddresses", item, detail)];
  });
}

const localModes = ["ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix", ""];

export function validateDetectLocal({
  detectLocalMode,
  detectLocal,
  clusterCIDRs,
}: ProxyConfig): FieldError[] {
  const block = `${root}.DetectLocalConfiguration`;
  switch (detectLocalMode) {
    case "BridgeInterface":
      return notEmpty(`${block}.InterfaceName`, "detectLocal.bridgeInterface", detectLocal.bridgeInterface);
    case "InterfaceNamePrefix":
      return notEmpty(
        `${block}.InterfacePrefix`,
        "detectLocal.interfaceNamePrefix",
        detectLocal.interfaceNamePrefix,
      );
    case "ClusterCIDR":
      return validateClusterCIDRs(`${block}.ClusterCIDRs`, clusterCIDRs);
    default:
      return localModes.includes(detectLocalMode)
        ? []
        : [unsupported(`${root}.DetectLocalMode`, "detectLocalMode", detectLocalMode, localModes)];
  }
}

function validateClusterCIDRs(path: string, items: readonly string[]): FieldError[] {
  const pair = "must be one CIDR or a dual-stack pair of CIDRs, like 10.100.0.0/16,fde4:8dba:82e1::/48";
  if (items.length > 2) return [invalid(path, "clusterCIDR", items, pair)];
  const cidrs = items.map(parseCidr);
  const errors = items.flatMap((item, i) => {
    if (cidrs[i] !== null) return [];
    const blank = parseCidr(item.trim()) === null ? "" : ", without blanks around it";
    return [
      invalid(
        `${path}[${i}]`,
        "clusterCIDR",
        item,
        `must be a CIDR, like 10.100.0.0/16 or fde4:8dba:82e1::/48${blank}`,
      ),
    ];
  });
  const [first, second] = cidrs;
  const sameFamily = first && second && familyOf(first) === familyOf(second);
  return sameFamily ? [...errors, invalid(path, "clusterCIDR", items, pair)] : errors;
}

function notEmpty(path: string, setting: Path, value: string): FieldError[] {
  return value === "" ? [invalid(path, setting, value, "must not be empty in this detectLocalMode")] : [];
}
