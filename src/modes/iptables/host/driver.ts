// The driver of iptables mode: the tables that kube-proxy writes, and a canary chain that detects a flush.
import { detectBackEnd } from "../../../host/iptables/back-end.ts";
import { watchCanary } from "../../../host/iptables/canary.ts";
import { type Start, starter } from "../../../host/iptables/command.ts";
import { ensureCounter } from "../../../host/iptables/counters.ts";
import { openIptablesHost } from "../../../host/iptables/host.ts";
import type { Family } from "../../../model/address.ts";
import type { Clock } from "../../../model/clock.ts";
import type { Driver } from "../../driver.ts";
import { compile } from "../compile.ts";
import { canaryChain, counterNames } from "../foundation.ts";
import { Counting } from "./counting.ts";
import { TablesDriver } from "./tables.ts";

export type IptablesOptions = {
  readonly family: Family;
  readonly clock: Clock;
  /** `syncPeriod` as it is now: how often to check for a flush of the tables. */
  readonly canaryPeriodMs: () => number;
  readonly netns?: string;
  /** How programs are started; on this machine by default. */
  readonly start?: Start;
};

export async function openIptables(options: IptablesOptions): Promise<Driver> {
  const place = options.netns === undefined ? {} : { netns: options.netns };
  const start = await detectBackEnd(options.start ?? starter(place));
  const host = await openIptablesHost(options.family, start);
  const counting = new Counting({
    invalidDropped: await ensureCounter(counterNames.invalidDropped, place),
    localhostNodePorts: await ensureCounter(counterNames.localhostNodePorts, place),
  });
  return new TablesDriver(host, {
    place,
    compile: (before, routes) => compile(before, routes, counting.counters),
    lacks: () => counting.lacks,
    simplify: (error) => counting.giveUp(error),
    isDispensable: (error) => counting.isRefused(error),
    watchCanary: (applied, onGone, signal) => {
      const { family, clock, canaryPeriodMs: periodMs } = options;
      void watchCanary({ ...applied, family, clock, chain: canaryChain, start, periodMs, onGone }, signal);
    },
  });
}
