// Whether a machine could run another mode, and what the mode it leaves would leave behind there; nothing is changed.
import { existsSync, readFileSync } from "node:fs";
import type { Mode } from "../config/modes.ts";
import { HostError } from "../host/error.ts";
import { inUseHere } from "../host/iptables/back-end.ts";
import { starter } from "../host/iptables/command.ts";
import { openIptablesHost } from "../host/iptables/host.ts";
import { nftablesFamilies, requireNftables } from "../host/nftables/support.ts";

export type Readiness = {
  /** Why the mode cannot run here; empty: it can. */
  readonly blocks: readonly string[];
  readonly remarks: readonly string[];
};

/** What is read of the machine; null: there is no such file. */
export type ReadFile = (path: string) => string | null;

export async function readinessFor(
  from: Mode,
  to: Mode,
  place: { readonly netns?: string },
): Promise<Readiness> {
  const blocks: string[] = [];
  try {
    if (to === "nftables") await requireNftables({ ...place, families: await nftablesFamilies() });
    else await openIptablesHost("ipv4", await inUseHere(starter(place)));
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    blocks.push(error.message);
  }
  // A node of the playground has a view of these files that we do not.
  return { blocks, remarks: place.netns === undefined ? remarksOn(from, to, readHere) : [] };
}

export function remarksOn(from: Mode, to: Mode, read: ReadFile): string[] {
  const value = (name: string) => read(`/proc/sys/${name}`)?.trim() ?? null;
  const remarks: string[] = [];
  if (to === "ipvs" && read("/proc/net/ip_vs") === null)
    remarks.push("The module ip_vs is not loaded: it and the scheduler's module must be there.");
  if (from === "iptables" && to !== "iptables" && value("net/ipv4/conf/all/route_localnet") === "1")
    remarks.push(
      "route_localnet is on, which iptables mode needs, guards with a rule, and leaves behind without it: set net.ipv4.conf.all.route_localnet=0, or neighbours may reach what listens on 127.0.0.1 only.",
    );
  if (from !== "ipvs" || to === "ipvs") return remarks;
  if (value("net/ipv4/conf/all/arp_ignore") === "1")
    remarks.push(
      "arp_ignore and arp_announce stay as strictARP set them: set net.ipv4.conf.all.arp_ignore=0 and arp_announce=0 unless something else needs them.",
    );
  if (value("net/ipv4/ip_forward") === "1")
    remarks.push(
      "ipvs mode switched net.ipv4.ip_forward on at each start; other modes do not: make sure that it stays on after a restart.",
    );
  if (read("/sys/class/net/kube-ipvs0/ifindex") !== null)
    remarks.push(
      "kube-ipvs0 and its addresses, virtual servers, IP sets and chains are here; Turnout removes them after its first Sync, and --cleanup does.",
    );
  return remarks;
}

function readHere(path: string): string | null {
  return existsSync(path) ? readFileSync(path, "utf8") : null;
}
