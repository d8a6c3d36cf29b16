// What modes do besides deciding about a packet: data, for those who move from one mode to another.
import type { ModeName } from "../config/modes.ts";

/** Row numbers are those of the conformance matrix. */
export type Habits = {
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
};

export const habitsOf: Readonly<Record<ModeName, Habits>> = {
  nftables: {
    choice: "random",
    affinity: "shared",
    clientsRemembered: 65_535,
    invalidPackets: "pass",
    pastForwardPolicy: "none",
    healthCheckPortsAccepted: false,
    holdsAddresses: false,
    connectionsOutlive: true,
  },
  iptables: {
    choice: "random",
    affinity: "shared",
    clientsRemembered: 100,
    invalidPackets: "drop",
    pastForwardPolicy: "masqueraded",
    healthCheckPortsAccepted: true,
    holdsAddresses: false,
    connectionsOutlive: true,
  },
  ipvs: {
    choice: "scheduler",
    affinity: "each frontend",
    clientsRemembered: null,
    invalidPackets: "pass",
    pastForwardPolicy: "all",
    healthCheckPortsAccepted: true,
    holdsAddresses: true,
    connectionsOutlive: true,
  },
  userspace: {
    choice: "turn",
    affinity: "shared",
    clientsRemembered: 65_535,
    invalidPackets: "pass",
    pastForwardPolicy: "all",
    healthCheckPortsAccepted: false,
    holdsAddresses: false,
    connectionsOutlive: false,
  },
};
