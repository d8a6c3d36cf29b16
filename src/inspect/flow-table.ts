// Streams the conntrack table of a node past a visitor, with progress on stderr; memory does not grow with the table.

import { run, starter } from "../host/iptables/command.ts";
import { readConntrackStats } from "../host/netlink/conntrack-stats.ts";
import { type FlowReading, visitEveryFlow } from "../host/netlink/visit-flows.ts";
import type { Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { FlowView } from "../model/flow.ts";
import { modes } from "../modes/index.ts";
import { type Attribute, attributor } from "../traffic/attribute.ts";
import { type EligibilityOf, eligibilityReader } from "../traffic/eligibility.ts";
import type { NodeView } from "./node-view.ts";
import type { ProgressWorld } from "./read-progress.ts";
import { nothingRemoved, type Removed } from "./removed-frontends.ts";
import { placeOf, type Target } from "./target.ts";

/** How flows of one family are attributed, by the Routes of one moment. */
export type FlowReader = { readonly attribute: Attribute; readonly eligibilityOf: EligibilityOf };

export type FlowReaders = Readonly<Record<Family, FlowReader>>;

export function flowReaders({ target, routes }: NodeView, removed: Removed = nothingRemoved): FlowReaders {
  const { behavior, conntrack } = modes[target.config.mode];
  const readerOf = (family: Family): FlowReader => ({
    attribute: attributor(routes[family], behavior, { conntrack, removed: removed[family] }),
    eligibilityOf: eligibilityReader(routes[family], behavior),
  });
  return { ipv4: readerOf("ipv4"), ipv6: readerOf("ipv6") };
}

export type ReadingWorld = ProgressWorld & { readonly clock: Pick<Clock, "steady"> };

/** Calls `visit` for every flow of the node's families; the view is valid only during the call. */
export async function visitFlows(
  target: Target,
  visit: (flow: FlowView) => void,
  world: ReadingWorld,
  signal: AbortSignal,
): Promise<FlowReading> {
  const place = placeOf(target);
  const { entries } = await readConntrackStats(place, signal);
  const progress = flowProgress(entries, world);
  let examined = 0;
  const counting = (flow: FlowView) => {
    progress.step(++examined);
    visit(flow);
  };
  try {
    return await visitEveryFlow(target.families, counting, place, signal);
  } finally {
    progress.done();
  }
}

const quietMs = 1_000;
/** Flows between two readings of the clock. */
const stride = 4096;

function flowProgress(
  entries: number,
  { stderr, isTerminal = false, clock }: ReadingWorld,
): { readonly step: (examined: number) => void; readonly done: () => void } {
  let shownAt = clock.steady();
  let isShown = false;
  return {
    step(examined) {
      if (examined % stride !== 0 || clock.steady() - shownAt < quietMs) return;
      const text = `read ${counted(examined)} of about ${counted(entries)} flows`;
      stderr(isTerminal ? `\r\x1b[K${text}` : `${text}\n`);
      isShown = true;
      shownAt = clock.steady();
    },
    done() {
      if (isShown && isTerminal) stderr("\r\x1b[K");
    },
  };
}

export function counted(count: number): string {
  return count.toLocaleString("en");
}

/** Settings of conntrack in the node's network namespace; null: the kernel does not have it. */
export type ConntrackSettings = {
  readonly accounting: boolean | null;
  readonly timestamps: boolean | null;
  /** 0: no events; 1: of all flows; 2: of flows that start while a program listens. */
  readonly events: number | null;
};

const folder = "/proc/sys/net/netfilter";

/** Read by a process in the network namespace of the node, where they may differ. */
export async function readConntrackSettings(target: Target): Promise<ConntrackSettings> {
  const names = ["nf_conntrack_acct", "nf_conntrack_timestamp", "nf_conntrack_events"];
  const files = names.map((name) => `${folder}/${name}`);
  const { stdout } = await run(starter(placeOf(target)), "grep", ["-sH", "", ...files]);
  const valueIn = (name: string) => {
    const [, digits] = new RegExp(`/${name}:(\\d+)$`, "m").exec(stdout) ?? [];
    return digits === undefined ? null : Number(digits);
  };
  const [acct, timestamp, events] = names.map(valueIn);
  const isOn = (value: number | null | undefined) => (value == null ? null : value !== 0);
  return { accounting: isOn(acct), timestamps: isOn(timestamp), events: events ?? null };
}
