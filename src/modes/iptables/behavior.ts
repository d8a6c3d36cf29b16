// What iptables mode does where modes differ.
import type { Behavior } from "../../routing/behavior.ts";

export const iptablesBehavior: Behavior = {
  undefinedPort: "pass",
  unallocatedAddress: "pass",
  refusesOnEveryLocalAddress: true,
  nodeToExternalWithoutEndpoints: "pass",
  firewallWithoutEndpoints: false,
  firewallAtExternalIPs: false,
  hairpinOfRemoteEndpoints: true,
  loopback: "localhostNodePorts",
  localShortCircuit: true,
  choice: "random",
  affinity: "shared",
  clientsRemembered: 100,
  invalidPackets: "drop",
  pastForwardPolicy: "masqueraded",
  healthCheckPortsAccepted: true,
  holdsAddresses: false,
  connectionsOutlive: true,
  noEndpoints: "refused",
  countsLocal: "ports",
};
