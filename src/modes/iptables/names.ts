// Names of the chains of a ServicePort and of its Endpoints: the same that kube-proxy derives, from the same text.
import { hash } from "node:crypto";
import { type Endpoint, endpointKey, portLabel, type ServicePort } from "../../model/snapshot.ts";
import type { ChainName } from "../../plan/iptables/types.ts";

/** The chains of one ServicePort; each exists only where something needs it. */
export type ChainNames = {
  /** Picks among the Endpoints of the whole cluster. */
  readonly cluster: ChainName;
  /** Picks among the Endpoints on this node. */
  readonly local: ChainName;
  /** Entrance for external addresses and NodePorts. */
  readonly external: ChainName;
  /** Lets allowed sources through to load-balancer addresses. */
  readonly firewall: ChainName;
};

export function chainNames(port: ServicePort): ChainNames {
  const suffix = shortHash(hashedName(port));
  return {
    cluster: `KUBE-SVC-${suffix}`,
    local: `KUBE-SVL-${suffix}`,
    external: `KUBE-EXT-${suffix}`,
    firewall: `KUBE-FW-${suffix}`,
  };
}

export function endpointChain(port: ServicePort, endpoint: Endpoint): ChainName {
  return `KUBE-SEP-${shortHash(hashedName(port) + endpointKey(endpoint))}`;
}

/** The first 16 characters of the base32 of SHA-256. */
export function shortHash(text: string): string {
  const digest = hash("sha256", text, "buffer");
  let name = "";
  // Ten bytes are sixteen groups of five bits.
  for (let group = 0; group < 16; group++) {
    const bit = group * 5;
    const pair = (digest[bit >> 3]! << 8) | digest[(bit >> 3) + 1]!;
    name += base32[(pair >> (11 - (bit & 7))) & 31];
  }
  return name;
}

const base32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function hashedName(port: ServicePort): string {
  return portLabel(port) + port.protocol;
}
