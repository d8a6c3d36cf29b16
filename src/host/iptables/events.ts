// Detects changes of our chains by other programs immediately, where the tables are nf_tables.
import type { Family } from "../../model/address.ts";
import { quoted } from "../../model/problem.ts";
import { tableNames } from "../../plan/iptables/types.ts";
import { HostError } from "../error.ts";
import { type TableChange, watchTables, watchTransactions } from "../netlink/tableevents.ts";
import type { Place } from "./command.ts";
import type { IptablesHost } from "./host.ts";

type WatchedHost = Pick<IptablesHost, "family" | "isOwn"> & {
  /** Whether a rule of ours must be in KUBE-FIREWALL, the chain that the kubelet writes too. */
  readonly guardsLoopback: () => boolean;
};

/** Calls back until the signal aborts. Where events cannot be had, the canary alone has to do. */
export class ForeignChanges {
  readonly #host: WatchedHost;
  readonly #report: (what: string) => void;
  readonly #signal: AbortSignal;
  readonly #place: Place;
  #stage: "before" | "loading" | "listening" = "before";
  readonly #loading = new AbortController();
  /** What other programs did during the first load. */
  #meanwhile: string | null = null;

  constructor(host: WatchedHost, report: (what: string) => void, signal: AbortSignal, place: Place) {
    this.#host = host;
    this.#report = report;
    this.#signal = signal;
    this.#place = place;
  }

  /** To be called before the host is read for the first time: a load causes thousands of events, of which few are received. */
  async expectLoad(): Promise<void> {
    if (this.#stage !== "before") return;
    this.#stage = "loading";
    const listener = {
      committed: ({ portId, process }: { readonly portId: number; readonly process: string }) => {
        if (!this.#host.isOwn(portId)) this.#meanwhile ??= `${quoted(process)} changed nf_tables`;
      },
      lost: () => {
        this.#meanwhile ??= "events of nf_tables were lost";
      },
    };
    const signal = AbortSignal.any([this.#signal, this.#loading.signal]);
    await watchTransactions(listener, signal, this.#place).catch(unlessUnavailable);
  }

  /** From here on every change of our chains is received; changes by other programs before that are reported. */
  async listen(): Promise<void> {
    if (this.#stage === "listening") return;
    this.#stage = "listening";
    await watchForeignChanges(this.#host, this.#report, this.#signal, this.#place);
    await eventsRead();
    this.#loading.abort();
    if (this.#meanwhile !== null) this.#report(`${this.#meanwhile} during the first load`);
  }
}

/** What the kernel has sent is read in the next turn of the event loop. */
async function eventsRead(): Promise<void> {
  for (let turns = 0; turns < 2; turns++) await new Promise((resolve) => setImmediate(resolve));
}

function unlessUnavailable(error: unknown): void {
  if (!(error instanceof HostError)) throw error;
}

async function watchForeignChanges(
  host: WatchedHost,
  onChange: (what: string) => void,
  signal: AbortSignal,
  place: Place,
): Promise<void> {
  let touched: string | null = null;
  const listener = {
    changed: (change: TableChange) => {
      if (concernsUs(change, host)) touched ??= `${change.verb} ${change.name} in table ${change.table}`;
    },
    // A program's first socket has its process id as port id, as seen in its own namespace; `pid` is the machine's.
    committed: ({ portId, process }: { readonly portId: number; readonly process: string }) => {
      if (touched !== null && !host.isOwn(portId))
        onChange(`${quoted(process)} changed our chains: ${touched}`);
      touched = null;
    },
    lost: () => onChange("events of nf_tables were lost"),
  };
  await watchTables(listener, signal, { ...place, family: families[host.family] }).catch(unlessUnavailable);
}

const families = { ipv4: "ip", ipv6: "ip6" } as const satisfies Record<Family, string>;

const ofKubelet = /^KUBE-(KUBELET-CANARY|IPTABLES-HINT)$/;

const builtIn = new Set(["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]);

/** Other programs' chains are ignored; a change of a built-in chain may have removed a jump of ours. */
function concernsUs({ verb, table, name }: TableChange, host: WatchedHost): boolean {
  if (!tableNames.some((known) => known === table)) return false;
  if (verb === "delTable") return true;
  if (name === "KUBE-FIREWALL") return host.guardsLoopback();
  if (name.startsWith("KUBE-")) return !ofKubelet.test(name);
  return builtIn.has(name) && (verb === "delRule" || verb === "delChain");
}
