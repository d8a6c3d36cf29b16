// What ipvs mode leaves on a host besides rules, and what it needs that the host lacks.
import { type ReadFile, readSysctl } from "../read-file.ts";

export function ipvsLeftovers(read: ReadFile): string[] {
  const remarks: string[] = [];
  if (readSysctl(read, "net/ipv4/conf/all/arp_ignore") === "1")
    remarks.push(
      "arp_ignore and arp_announce stay as strictARP set them: set net.ipv4.conf.all.arp_ignore=0 and arp_announce=0 unless something else needs them.",
    );
  if (readSysctl(read, "net/ipv4/ip_forward") === "1")
    remarks.push(
      "ipvs mode switched net.ipv4.ip_forward on at each start; other modes do not: make sure that it stays on after a restart.",
    );
  if (read("/sys/class/net/kube-ipvs0/ifindex") !== null)
    remarks.push(
      "kube-ipvs0 and its addresses, virtual servers, IP sets and chains are here; Turnout removes them after its first Sync, what connections go through when these have ended, and --cleanup removes all of it immediately.",
    );
  return remarks;
}

export function missingForIpvs(read: ReadFile): string[] {
  if (read("/proc/net/ip_vs") !== null) return [];
  return ["The module ip_vs is not loaded: it and the scheduler's module must be there."];
}
