// What iptables mode leaves on a host besides rules; cleanup does not change it.
import { type ReadFile, readSysctl } from "../read-file.ts";

export function iptablesLeftovers(read: ReadFile): string[] {
  if (readSysctl(read, "net/ipv4/conf/all/route_localnet") !== "1") return [];
  return [
    "route_localnet is on, which iptables mode needs, guards with a rule, and leaves on without it: set net.ipv4.conf.all.route_localnet=0, or neighbours may reach what listens on 127.0.0.1 only.",
  ];
}
