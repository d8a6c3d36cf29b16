// What userspace mode does where modes differ; decide.ts adds the effect of relays.
import type { Behavior } from "../../routing/behavior.ts";

export const userspaceBehavior: Behavior = {
  undefinedPort: "pass",
  unallocatedAddress: "pass",
  refusesOnEveryLocalAddress: false,
  nodeToExternalWithoutEndpoints: "reject",
  firewallWithoutEndpoints: true,
  firewallAtExternalIPs: true,
  hairpinOfRemoteEndpoints: true,
  loopback: "always",
  localShortCircuit: true,
  choice: "turn",
  affinity: "shared",
  clientsRemembered: 65_535,
  invalidPackets: "pass",
  pastForwardPolicy: "all",
  healthCheckPortsAccepted: false,
  holdsAddresses: false,
  connectionsOutlive: false,
  noEndpoints: "closed",
  countsLocal: "ports",
};
