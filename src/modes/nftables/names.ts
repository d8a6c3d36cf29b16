// Names of kernel objects: kube-proxy's own where an object means the same, so that either program adopts the other's.
import { createHash } from "node:crypto";
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import type { Protocol, ServicePort } from "../../model/snapshot.ts";
import type { Backend } from "../../plan/nftables/types.ts";

/** Chains and sets of one sticky ServicePort: kube-proxy's names, so that pins survive a change of program. */
export function serviceName(prefix: "service" | "local" | "external", port: ServicePort): string {
  return `${prefix}-${hashed(serviceText(port))}`;
}

/** Maps from the slots of all frontends to endpoints. */
export type SlotMap = "endpoints" | "local-endpoints" | "nodeport-endpoints" | "local-nodeport-endpoints";

/** A map whose elements count has another name: the kernel does not add counters to elements that exist. */
export function slotMap<Name extends SlotMap>(name: Name, traffic: TrafficSetting): Name | `counted-${Name}` {
  return traffic === "endpoints" ? `counted-${name}` : name;
}

/** The slot map of one pool of a large ServicePort. */
export function slotMapName(
  prefix: "endpoints" | "local-endpoints",
  port: ServicePort,
  traffic: TrafficSetting,
): string {
  return `${slotMap(prefix, traffic)}-${hashed(serviceText(port))}`;
}

/** Sets whose elements count packets; they exist only where traffic is counted. */
export const countedSet = {
  ips: "traffic-ips",
  nodePorts: "traffic-nodeports",
  refusedIPs: "refused-ips",
  refusedNodePorts: "refused-nodeports",
  outOfRange: "out-of-range-ips",
} as const;

export function endpointName(prefix: "endpoint" | "affinity", port: ServicePort, backend: Backend): string {
  const address = backend.address.replaceAll(":", ".");
  return `${prefix}-${hashed(`${serviceText(port)}__${address}/${backend.port}`)}`;
}

/**
 * A chain that all ServicePorts with the same protocol and number of endpoints share. The slash makes kube-proxy take
 * it for a chain of a Service: it removes it when it takes over.
 */
export function pickerName(kind: PickerKind, protocol: Protocol, slots: number): string {
  return `${kind}/${protocol}/${slots}`;
}

const pickerKinds = [
  "pick",
  "pick-local",
  "external",
  "external-local",
  "nodeport",
  "nodeport-local",
  "pick-nodeport",
  "pick-nodeport-local",
] as const;

export type PickerKind = (typeof pickerKinds)[number];

/** What `pickerName` made the name of; null when it did not. */
export function pickerNamed(
  name: string,
): { readonly kind: PickerKind; readonly protocol: Protocol; readonly slots: number } | null {
  const [, before, protocol, slots] = /^([a-z-]+)\/(tcp|udp|sctp)\/([1-9]\d{0,5})$/.exec(name) ?? [];
  const kind = pickerKinds.find((each) => each === before);
  return kind === undefined ? null : { kind, protocol: protocol as Protocol, slots: Number(slots) };
}

/** The kernel takes element comments of at most 128 bytes. */
export function shortComment(text: string): string {
  let bytes = 0;
  let end = 0;
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > 128) break;
    end += character.length;
  }
  return text.slice(0, end);
}

function serviceText(port: ServicePort): string {
  return `${port.service}/${port.protocol}/${port.portName}`;
}

/** Names may have 256 bytes; 16 are kept for the prefix. */
function hashed(text: string): string {
  const base = `${base32(createHash("sha256").update(text).digest()).slice(0, 8)}-${text}`;
  return base.length > 240 ? `${base.slice(0, 237)}...` : base;
}

function base32(bytes: Uint8Array): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes.subarray(0, 5)) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      text += alphabet[(value >>> (bits - 5)) & 31];
      bits -= 5;
      value &= (1 << bits) - 1;
    }
  }
  return text;
}
