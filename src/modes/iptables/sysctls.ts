// Kernel settings that iptables mode needs before its first rule.

import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { SysctlTarget } from "../../model/sysctl.ts";

const reason =
  "serves NodePorts on 127.0.0.0/8; to avoid it set iptables.localhostNodePorts to false, or nodePortAddresses without loopback";

/** NodePorts on loopback addresses leave the node from such an address, which the kernel forbids by default. */
export function iptablesSysctls(settings: FamilySettings): readonly SysctlTarget[] {
  if (!settings.localhostNodePorts) return [];
  return [{ file: "/proc/sys/net/ipv4/conf/all/route_localnet", value: 1, when: "differs", reason }];
}
