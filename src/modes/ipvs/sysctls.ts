// Kernel settings that ipvs mode needs before its first server.
import type { SysctlTarget } from "../../model/sysctl.ts";

/** In this order; `release`: of the kernel, as `uname -r` prints it. */
export function ipvsSysctls(strictARP: boolean, release: string): readonly SysctlTarget[] {
  const set = (name: string, value: number): SysctlTarget => ({
    file: `/proc/sys/net/ipv4/${name}`,
    value,
    when: "differs",
  });
  return [
    set("vs/conntrack", 1),
    ...(losesReusedPorts(release) ? [set("vs/conn_reuse_mode", 0)] : []),
    set("vs/expire_nodest_conn", 1),
    set("vs/expire_quiescent_template", 1),
    set("ip_forward", 1),
    ...(strictARP ? [set("conf/all/arp_ignore", 1), set("conf/all/arp_announce", 2)] : []),
  ];
}

/**
 * From Linux 4.1, which brought the setting, until 5.9 the first packet of a new connection from a port that was used a
 * moment ago is dropped, a second long.
 */
function losesReusedPorts(release: string): boolean {
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number);
  const version = major * 1000 + minor;
  return version >= 4001 && version < 5009;
}
