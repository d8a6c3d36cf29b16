// Notices at once, where the tables are nf_tables, that somebody else changed chains of ours.
import type { Family } from "../../model/address.ts";
import { quoted } from "../../model/problem.ts";
import { tableNames } from "../../plan/iptables/types.ts";
import { HostError } from "../error.ts";
import { type TableChange, watchTables } from "../netlink/tableevents.ts";
import type { Place } from "./command.ts";
import type { IptablesHost } from "./host.ts";

/** Calls back until the signal aborts. Where events cannot be had, the canary alone has to do. */
export async function watchForeignChanges(
  family: Family,
  host: Pick<IptablesHost, "isOwn">,
  onChange: (what: string) => void,
  signal: AbortSignal,
  place: Place = {},
): Promise<void> {
  let touched: string | null = null;
  const listener = {
    changed: (change: TableChange) => {
      if (concernsUs(change, family)) touched ??= `${change.verb} ${change.name} in table ${change.table}`;
    },
    // A program's first socket has its process id as port id, as seen in its own namespace; `pid` is the machine's.
    committed: ({ portId, process }: { readonly portId: number; readonly process: string }) => {
      if (touched !== null && !host.isOwn(portId))
        onChange(`${quoted(process)} changed our chains: ${touched}`);
      touched = null;
    },
    lost: () => onChange("events of nf_tables were lost"),
  };
  try {
    await watchTables(listener, signal, place);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
  }
}

const families = { ipv4: "ip", ipv6: "ip6" } as const satisfies Record<Family, string>;

/** The kubelet has chains of its own, and one that it shares with us. */
const ofKubelet = /^KUBE-(KUBELET-CANARY|IPTABLES-HINT|FIREWALL)$/;

const builtIn = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);

/** What others do in chains of their own is their business; in a built-in chain a jump of ours may have gone. */
function concernsUs({ verb, family, table, name }: TableChange, ours: Family): boolean {
  if (family !== families[ours] || !tableNames.some((known) => known === table)) return false;
  if (verb === "delTable") return true;
  if (name.startsWith("KUBE-")) return !ofKubelet.test(name);
  return builtIn.has(name) && (verb === "delRule" || verb === "delChain");
}
