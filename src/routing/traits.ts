// Where modes legitimately treat a packet differently: data, each with its reason; everything else has one meaning.

/** What a Mode does where the specification leaves it open; row numbers are those of the conformance matrix. */
export type Traits = {
  /** Rows 32–34: a port or protocol that no Service defines, on an active cluster IP. */
  readonly undefinedPort: "reject" | "pass";
  /** Row 35: an address inside a ServiceCIDR that no Service holds. */
  readonly unallocatedAddress: "drop" | "pass";
  /** Rows 64, 92: NodePorts without endpoints are refused also on local addresses that serve no NodePorts. */
  readonly refusesOnEveryLocalAddress: boolean;
  /** Rows 109, 125: the node's own packet to a foreign external address without endpoints. */
  readonly nodeToExternalWithoutEndpoints: "reject" | "pass";
  /** Row 136: source ranges hold although nothing could answer. */
  readonly firewallWithoutEndpoints: boolean;
  /** Source ranges hold also at a load balancer's address that the Service lists among its external IPs. */
  readonly firewallAtExternalIPs: boolean;
  /** Row 73: a pod elsewhere that reaches itself through this node is masqueraded. */
  readonly hairpinOfRemoteEndpoints: boolean;
  /** Rows 89–99: which setting rules NodePorts on loopback. */
  readonly loopback: "localhostNodePorts" | "nftLocalhost" | "always" | "never";
  /** Rows 70–72: external addresses lead this node and its pods to the whole cluster in spite of policy Local. */
  readonly localShortCircuit: boolean;
};

export const nftablesTraits: Traits = {
  undefinedPort: "reject",
  unallocatedAddress: "drop",
  refusesOnEveryLocalAddress: false,
  nodeToExternalWithoutEndpoints: "reject",
  firewallWithoutEndpoints: true,
  firewallAtExternalIPs: true,
  hairpinOfRemoteEndpoints: false,
  loopback: "nftLocalhost",
  localShortCircuit: true,
};

/** As far as rules and relays decide; what a relay adds to that, `modes/userspace/decide.ts` knows. */
export const userspaceTraits: Traits = {
  undefinedPort: "pass",
  unallocatedAddress: "pass",
  refusesOnEveryLocalAddress: false,
  nodeToExternalWithoutEndpoints: "reject",
  firewallWithoutEndpoints: true,
  firewallAtExternalIPs: true,
  hairpinOfRemoteEndpoints: true,
  loopback: "always",
  localShortCircuit: true,
};

export const iptablesTraits: Traits = {
  undefinedPort: "pass",
  unallocatedAddress: "pass",
  refusesOnEveryLocalAddress: true,
  nodeToExternalWithoutEndpoints: "pass",
  firewallWithoutEndpoints: false,
  firewallAtExternalIPs: false,
  hairpinOfRemoteEndpoints: true,
  loopback: "localhostNodePorts",
  localShortCircuit: true,
};

/** As far as addresses decide; what virtual servers make of policies, `modes/ipvs/decide.ts` knows. */
export const ipvsTraits: Traits = {
  undefinedPort: "reject",
  unallocatedAddress: "pass",
  refusesOnEveryLocalAddress: false,
  nodeToExternalWithoutEndpoints: "reject",
  firewallWithoutEndpoints: true,
  firewallAtExternalIPs: true,
  hairpinOfRemoteEndpoints: false,
  loopback: "never",
  localShortCircuit: false,
};
