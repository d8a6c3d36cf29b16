// What the conntrack settings mean for this machine: which kernel settings should have which values.
import type { SysctlTarget } from "../../model/sysctl.ts";

/** Section `conntrack` of the configuration; times in nanoseconds. */
export type ConntrackSettings = {
  readonly maxPerCore: number | null;
  readonly min: number | null;
  readonly tcpEstablishedTimeout: bigint | null;
  readonly tcpCloseWaitTimeout: bigint | null;
  readonly tcpBeLiberal: boolean;
  readonly udpTimeout: bigint;
  readonly udpStreamTimeout: bigint;
};

const netfilter = "/proc/sys/net/netfilter";
/** One for the whole machine: outside its first network namespace the kernel shows it as read-only. */
export const conntrackMaxFile = `${netfilter}/nf_conntrack_max`;
const hashSizeFile = "/sys/module/nf_conntrack/parameters/hashsize";

/** Beyond this the hash table alone would take a great part of the memory. */
const largestProduct = 1_048_576;

/** In the order in which they must be applied. */
export function conntrackTargets(settings: ConntrackSettings, cpus: number): readonly SysctlTarget[] {
  return [
    ...maxTargets(conntrackMax(settings, cpus)),
    ...seconds("nf_conntrack_tcp_timeout_established", settings.tcpEstablishedTimeout),
    ...seconds("nf_conntrack_tcp_timeout_close_wait", settings.tcpCloseWaitTimeout),
    ...(settings.tcpBeLiberal ? [sysctl("nf_conntrack_tcp_be_liberal", 1)] : []),
    ...seconds("nf_conntrack_udp_timeout", settings.udpTimeout),
    ...seconds("nf_conntrack_udp_timeout_stream", settings.udpStreamTimeout),
  ];
}

/** Those that each network namespace has for itself. */
export function withoutLimits(targets: readonly SysctlTarget[]): readonly SysctlTarget[] {
  return targets.filter(({ file }) => file !== conntrackMaxFile && file !== hashSizeFile);
}

/** How many CPUs a list such as `0-3,8-11` names; null when it is not such a list. */
export function countCpus(online: string): number | null {
  let count = 0;
  for (const part of online.trim().split(",")) {
    const [, first, last] = /^([0-9]{1,6})(?:-([0-9]{1,6}))?$/.exec(part) ?? [];
    if (first === undefined) return null;
    count += Number(last ?? first) - Number(first) + 1;
  }
  return count > 0 ? count : null;
}

/** Largest number of connections; 0: leave it alone. */
function conntrackMax({ maxPerCore, min }: ConntrackSettings, cpus: number): number {
  if (maxPerCore === null || maxPerCore <= 0) return 0;
  const product = maxPerCore * cpus;
  if (product > largestProduct) return largestProduct;
  return Math.max(product, min ?? 0);
}

// A bucket for every four connections. The kernel accepts the maximum without it, and gets slow.
function maxTargets(max: number): readonly SysctlTarget[] {
  if (max === 0) return [];
  return [sysctl("nf_conntrack_max", max), { file: hashSizeFile, value: Math.floor(max / 4), when: "below" }];
}

/** Whole seconds: less than one is written as 0, as kube-proxy does. */
function seconds(name: string, time: bigint | null): readonly SysctlTarget[] {
  return time !== null && time > 0n ? [sysctl(name, Number(time / 1_000_000_000n))] : [];
}

function sysctl(name: string, value: number): SysctlTarget {
  return { file: `${netfilter}/${name}`, value, when: "differs" };
}
