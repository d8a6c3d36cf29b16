// What the configuration means in each mode: which blocks of the file count, and the defaults of each mode.
import type { Gates } from "./gates/gates.ts";
import { type Duration, seconds } from "./units/duration.ts";

export type ModeName = "iptables" | "ipvs" | "nftables" | "userspace";

type Meaning = {
  /** The block of the file whose periods count, and the flags for them. */
  readonly periods: "iptables" | "ipvs" | "nftables";
  readonly periodFlags: "iptables" | "ipvs";
  /** What kube-proxy takes for a `minSyncPeriod` that a file does not set. */
  readonly minSyncPeriod: Duration;
  /** The block with `masqueradeAll` and `masqueradeBit`. */
  readonly masquerade: "iptables" | "nftables";
  /** What an empty `nodePortAddresses` means; null: every address. */
  readonly nodePortAddresses: readonly string[] | null;
  /** Prefixes of the fields that apply in this mode and not in all. */
  readonly fields: readonly string[];
  /** Whether `portRange` counts. */
  readonly portRange: boolean;
  /** The gate without which there is no such mode. */
  readonly gate: Parameters<Gates>[0] | null;
};

const usual: Meaning = {
  periods: "iptables",
  periodFlags: "iptables",
  minSyncPeriod: seconds(1),
  masquerade: "iptables",
  nodePortAddresses: null,
  fields: ["iptables."],
  portRange: false,
  gate: null,
};

export const modes: Readonly<Record<ModeName, Meaning>> = {
  iptables: usual,
  ipvs: {
    ...usual,
    periods: "ipvs",
    periodFlags: "ipvs",
    minSyncPeriod: 0n,
    fields: ["ipvs.", "iptables.masquerade"],
    gate: "KubeProxyIPVS",
  },
  nftables: {
    ...usual,
    periods: "nftables",
    masquerade: "nftables",
    nodePortAddresses: ["primary"],
    fields: ["nftables."],
  },
  userspace: {
    ...usual,
    fields: ["iptables.syncPeriod", "iptables.minSyncPeriod", "portRange"],
    portRange: true,
  },
};

/** For any text in a file; an unknown mode is reported by validation. */
export function meaningIn(mode: string): Meaning {
  return isMode(mode) ? modes[mode] : usual;
}

/** Never true of what every object has, such as `constructor`. */
export function isMode(text: string): text is ModeName {
  return Object.hasOwn(modes, text);
}
