// What there is to say of a machine that comes from a mode or goes to one, in sentences.

/** What is read of the machine; null: there is no such file. */
export type ReadFile = (path: string) => string | null;

/** What iptables mode leaves behind, and clean-up does not touch. */
export function iptablesLeaves(read: ReadFile): string[] {
  if (sysctl(read, "net/ipv4/conf/all/route_localnet") !== "1") return [];
  return [
    "route_localnet is on, which iptables mode needs, guards with a rule, and leaves behind without it: set net.ipv4.conf.all.route_localnet=0, or neighbours may reach what listens on 127.0.0.1 only.",
  ];
}

/** What ipvs mode leaves behind. */
export function ipvsLeaves(read: ReadFile): string[] {
  const remarks: string[] = [];
  if (sysctl(read, "net/ipv4/conf/all/arp_ignore") === "1")
    remarks.push(
      "arp_ignore and arp_announce stay as strictARP set them: set net.ipv4.conf.all.arp_ignore=0 and arp_announce=0 unless something else needs them.",
    );
  if (sysctl(read, "net/ipv4/ip_forward") === "1")
    remarks.push(
      "ipvs mode switched net.ipv4.ip_forward on at each start; other modes do not: make sure that it stays on after a restart.",
    );
  if (read("/sys/class/net/kube-ipvs0/ifindex") !== null)
    remarks.push(
      "kube-ipvs0 and its addresses, virtual servers, IP sets and chains are here; Turnout removes them after its first Sync, what connections go through when these have ended, and --cleanup removes all at once.",
    );
  return remarks;
}

/** What ipvs mode would not find. */
export function ipvsLacks(read: ReadFile): string[] {
  if (read("/proc/net/ip_vs") !== null) return [];
  return ["The module ip_vs is not loaded: it and the scheduler's module must be there."];
}

function sysctl(read: ReadFile, name: string): string | undefined {
  return read(`/proc/sys/${name}`)?.trim();
}
