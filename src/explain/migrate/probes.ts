// The packets by which two modes are compared: every kind of sender at every Frontend, and at the edges of each.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import {
  type Address,
  addressBytes,
  type Cidr,
  contains,
  formatAddress,
  isLoopback,
  networkAddress,
} from "../../model/address.ts";
import type { Packet } from "../../routing/decide.ts";
import { isLocal } from "../../routing/pools.ts";
import type { Frontend, PortRoutes, Routes } from "../../routing/routes.ts";

/** What is compared; findings refer to these. */
export type Subject =
  | Frontend["kind"]
  | "loopback"
  | "otherAddress"
  | "undefinedPort"
  | "ping"
  | "itself"
  | "unallocated";

/** pod: of this node. allowed: an outside client that source ranges let in. */
export type ProbeSender = "pod" | "node" | "outside" | "allowed" | "endpoint elsewhere";

export type Probe = { readonly subject: Subject; readonly who: ProbeSender; readonly packet: Packet };

export function probesOf(routed: PortRoutes, { settings }: Routes): Probe[] {
  return [
    ...routed.routes.flatMap(({ frontend }) => atFrontend(frontend, routed, settings)),
    ...atEdges(routed, settings),
  ];
}

/** A packet to an address of the Services' network that no Service has; null when all networks are unknown. */
export function unallocatedProbe({ serviceCIDRs, servicePorts, settings }: Routes): Probe | null {
  const taken = new Set([...servicePorts.values()].map(({ clusterIP }) => clusterIP));
  for (const cidr of serviceCIDRs) {
    for (let n = 250; n > 0; n--) {
      const address = nth(cidr, n);
      if (!contains(cidr, address) || taken.has(address)) continue;
      const to = { address, protocol: "tcp", port: 80 } as const;
      return { subject: "unallocated", who: "pod", packet: { from: podOf(settings), to } };
    }
  }
  return null;
}

type From = Packet["from"];

function atFrontend(frontend: Frontend, { port }: PortRoutes, settings: FamilySettings): Probe[] {
  const address = frontend.kind === "nodePort" ? settings.nodeIP : frontend.address;
  if (frontend.kind === "nodePort" && isLoopback(address)) return [];
  const to = { address, protocol: frontend.protocol, port: frontend.port };
  const guarded = frontend.kind === "loadBalancerIP" && port.sourceRanges.length > 0;
  const senders: (readonly [ProbeSender, From])[] = [
    ["pod", podOf(settings)],
    ["node", nodeOf(settings, address)],
    ["outside", outsideOf(settings)],
  ];
  if (guarded) senders.push(["allowed", { origin: "elsewhere", address: nth(port.sourceRanges[0]!, 1) }]);
  return senders.map(([who, from]) => ({ subject: frontend.kind, who, packet: { from, to } }));
}

function atEdges({ port, routes }: PortRoutes, settings: FamilySettings): Probe[] {
  const { protocol, nodePort, clusterIP } = port;
  const probes: Probe[] = [];
  const pod = podOf(settings);
  if (nodePort !== 0) {
    const own = loopbackOf(settings);
    const to = (address: Address) => ({ address, protocol, port: nodePort });
    probes.push({
      subject: "loopback",
      who: "node",
      packet: { from: { origin: "node", address: own }, to: to(own) },
    });
    const others = settings.localAddresses.filter((each) => each !== settings.nodeIP && !isLoopback(each));
    for (const address of others.filter((each) => !each.startsWith("fe80:")))
      probes.push({
        subject: "otherAddress",
        who: "outside",
        packet: { from: outsideOf(settings), to: to(address) },
      });
  }
  for (const { frontend } of routes) {
    if (frontend.kind === "nodePort") continue;
    const to = { address: frontend.address, protocol, port: unusedPort };
    probes.push({ subject: "undefinedPort", who: "pod", packet: { from: pod, to } });
  }
  const ping = { address: clusterIP, protocol: "icmp", port: 0 } as const;
  probes.push({ subject: "ping", who: "pod", packet: { from: pod, to: ping } });
  const remote = port.endpoints.find((endpoint) => !isLocal(endpoint, settings));
  // Only one that counts as a pod of this node is sent back to where it came from.
  if (remote !== undefined && nodePort !== 0 && detectsAsPod(settings, remote.address)) {
    const from: From = { origin: "elsewhere", address: remote.address };
    const to = { address: settings.nodeIP, protocol, port: nodePort };
    probes.push({ subject: "itself", who: "endpoint elsewhere", packet: { from, to } });
  }
  return probes;
}

function detectsAsPod({ detector }: FamilySettings, address: Address): boolean {
  return detector.kind === "cidr" && contains(detector.cidr, address);
}

/** A port that Services hardly ever define: `discard`. */
const unusedPort = 9;

/** A pod of this node that no Service need know. */
function podOf({ detector, family }: FamilySettings): From {
  const address = detector.kind === "cidr" ? nth(detector.cidr, 253) : fallbackPod[family];
  return { origin: "pod", address };
}

/** The node reaches an address of its own from that very address. */
function nodeOf({ localAddresses, nodeIP }: FamilySettings, to: Address): From {
  return { origin: "node", address: localAddresses.includes(to) ? to : nodeIP };
}

function outsideOf({ family }: FamilySettings): From {
  return { origin: "elsewhere", address: stranger[family] };
}

function loopbackOf({ family }: FamilySettings): Address {
  return family === "ipv4" ? "127.0.0.1" : "::1";
}

const stranger = { ipv4: "203.0.113.9", ipv6: "2001:db8:ffff::9" } as const;
const fallbackPod = { ipv4: "10.254.254.253", ipv6: "fd00:fefe::fd" } as const;

/** The network's address plus so much in its last byte. */
function nth(cidr: Cidr, n: number): Address {
  const bytes = addressBytes(networkAddress(cidr))!.slice();
  bytes[bytes.length - 1] = (bytes.at(-1)! + n) & 255;
  const address = formatAddress(bytes);
  return contains(cidr, address) ? address : networkAddress(cidr);
}
