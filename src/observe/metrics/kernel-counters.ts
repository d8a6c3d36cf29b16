// Packets that rules in the kernel have counted, read when they are scraped.
import { type Family, families } from "../../model/address.ts";
import { type Protocol, protocols } from "../../model/snapshot.ts";
import { counterNames } from "../../modes/iptables/foundation.ts";
import { familyLabels } from "../family.ts";
import type { Metrics } from "./metrics.ts";

/** What is read of the kernel; both reject when they cannot. */
export type KernelCounters = {
  /** Packets of a named counter of iptables (nfacct); null: there is none. */
  readonly accounted: (name: string) => Promise<bigint | null>;
  /** Packets of the counters in our nftables table, by name. */
  readonly nftables: (family: Family) => Promise<ReadonlyMap<string, bigint>>;
};

export function reportKernelCounters(metrics: Metrics, counters: KernelCounters): void {
  const accounted = (name: string) => async () => {
    const packets = await counters.accounted(name);
    return packets === null ? [] : [{ labels: {}, value: Number(packets) }];
  };
  metrics.invalidDropped.from(accounted(counterNames.invalidDropped));
  metrics.localhostAccepted.from(accounted(counterNames.localhostNodePorts));
  metrics.localhostRejected.from(async () => {
    // A family without a table has no series; the other one has.
    const read = await Promise.allSettled(families.map((family) => rejected(family, counters)));
    return read.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  });
}

async function rejected(family: Family, counters: KernelCounters) {
  const byName = await counters.nftables(family);
  return protocols.flatMap((protocol: Protocol) => {
    const packets = byName.get(`localhost-nodeport-rejected-${protocol}`);
    const labels = { ip_family: familyLabels[family], protocol: protocol.toUpperCase() };
    return packets === undefined ? [] : [{ labels, value: Number(packets) }];
  });
}
