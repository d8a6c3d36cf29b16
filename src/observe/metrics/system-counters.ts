// The kernel's packet counters, over netlink.
import { readCounter } from "../../host/iptables/counters.ts";
import { readCounters } from "../../host/netlink/ruleset.ts";
import { nftFamilyOf, tableName } from "../../plan/nftables/types.ts";
import type { KernelCounters } from "./kernel-counters.ts";

export const systemCounters: KernelCounters = {
  accounted: (name) => readCounter(name),
  async nftables(family) {
    const counters = await readCounters(nftFamilyOf(family), tableName);
    return new Map(counters.map(({ name, counter }) => [name, counter.packets]));
  },
};
