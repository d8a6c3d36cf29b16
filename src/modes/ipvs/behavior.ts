// What ipvs mode does where modes differ; decide.ts adds the effect of virtual servers.
import type { Behavior } from "../../routing/behavior.ts";

export const ipvsBehavior: Behavior = {
  undefinedPort: "reject",
  unallocatedAddress: "pass",
  refusesOnEveryLocalAddress: false,
  nodeToExternalWithoutEndpoints: "reject",
  firewallWithoutEndpoints: true,
  firewallAtExternalIPs: true,
  hairpinOfRemoteEndpoints: false,
  loopback: "never",
  localShortCircuit: false,
  choice: "scheduler",
  affinity: "each frontend",
  clientsRemembered: null,
  invalidPackets: "pass",
  pastForwardPolicy: "all",
  healthCheckPortsAccepted: true,
  holdsAddresses: true,
  connectionsOutlive: true,
  noEndpoints: "refused",
  countsLocal: "services",
};
