// Where modes may differ in what they do: data, each with its reason. Everything else is the same in all modes.

/** Row numbers are those of the conformance matrix. */
export type Behavior = {
  /** Rows 32–34: a port or protocol that no Service defines, on an active cluster IP. */
  readonly undefinedPort: "reject" | "pass";
  /** Row 35: an address inside a ServiceCIDR that no Service holds. */
  readonly unallocatedAddress: "drop" | "pass";
  /** Rows 64, 92: NodePorts without endpoints are refused also on local addresses that serve no NodePorts. */
  readonly refusesOnEveryLocalAddress: boolean;
  /** Rows 109, 125: the node's own packet to a foreign external address without endpoints. */
  readonly nodeToExternalWithoutEndpoints: "reject" | "pass";
  /** Row 136: source ranges apply although there is no endpoint. */
  readonly firewallWithoutEndpoints: boolean;
  /** Source ranges also apply at a load balancer's address that the Service lists among its external IPs. */
  readonly firewallAtExternalIPs: boolean;
  /** Row 73: a pod elsewhere that reaches itself through this node is masqueraded. */
  readonly hairpinOfRemoteEndpoints: boolean;
  /** Rows 89–99: which setting controls NodePorts on loopback; nftLocalhost: listeners of our own serve them. */
  readonly loopback: "localhostNodePorts" | "nftLocalhost" | "always" | "never";
  /** Rows 70–72: external addresses lead this node and its pods to the whole cluster in spite of policy Local. */
  readonly localShortCircuit: boolean;
  /** How one of several endpoints is chosen. */
  readonly choice: "random" | "turn" | "scheduler";
  /** Row 144: whether all Frontends of a ServicePort share what they remember of a client. */
  readonly affinity: "shared" | "each frontend";
  /** Row 151: clients of one sticky endpoint that are remembered; null: as many as memory holds. */
  readonly clientsRemembered: number | null;
  /** Row 170: forwarded packets that connection tracking cannot make sense of. */
  readonly invalidPackets: "drop" | "pass";
  /** Rows 66, 67, 88: flows that live on although a foreign firewall drops what is forwarded. */
  readonly pastForwardPolicy: "none" | "masqueraded" | "all";
  /** Row 171: health-check ports answer although a foreign firewall drops what comes in. */
  readonly healthCheckPortsAccepted: boolean;
  /** Whether addresses of Services are addresses of the node. */
  readonly holdsAddresses: boolean;
  /** Whether connections live on when the process ends. */
  readonly connectionsOutlive: boolean;
  /** How a connection to a Service without endpoints ends. */
  readonly noEndpoints: "refused" | "closed";
  /** What the metrics count as having endpoints but none on this node, as in kube-proxy. */
  readonly countsLocal: "ports" | "services";
};
