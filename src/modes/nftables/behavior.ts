// What nftables mode does where modes differ.
import type { Behavior } from "../../routing/behavior.ts";

export const nftablesBehavior: Behavior = {
  undefinedPort: "reject",
  unallocatedAddress: "drop",
  refusesOnEveryLocalAddress: false,
  nodeToExternalWithoutEndpoints: "reject",
  firewallWithoutEndpoints: true,
  firewallAtExternalIPs: true,
  hairpinOfRemoteEndpoints: false,
  loopback: "nftLocalhost",
  localShortCircuit: true,
  choice: "random",
  affinity: "shared",
  clientsRemembered: 65_535,
  invalidPackets: "pass",
  pastForwardPolicy: "none",
  healthCheckPortsAccepted: false,
  holdsAddresses: false,
  connectionsOutlive: true,
  noEndpoints: "refused",
  countsLocal: "ports",
};
