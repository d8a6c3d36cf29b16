// `turnout flows --follow`: prints flows as they start, change state and end; events that the kernel dropped are reported.

import { type FlowEvent, watchFlows } from "../../host/netlink/flow-events.ts";
import { type FlowReaders, flowReaders, readConntrackSettings } from "../../inspect/flow-table.ts";
import type { NodeView } from "../../inspect/node-view.ts";
import { placeOf } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import type { FlowView } from "../../model/flow.ts";
import { printableLine } from "../../model/printable.ts";
import { type FlowRow, rowOf } from "../../traffic/flow-row.ts";
import { flowLine, quantity, todayText } from "../../traffic/print-rows.ts";
import type { FlowsReading } from "./list.ts";

type Following = FlowsReading & {
  /** Reads the cluster again. */
  readonly load: () => Promise<NodeView>;
};

/** Between two reports of lost events. */
const reportMs = 1_000;
/** Shortest time between two readings of the cluster. */
const reloadMs = 5_000;

export async function followFlows(asked: Following): Promise<number> {
  const { view, matches, output, world, signal } = asked;
  const { target } = view;
  const { events } = await readConntrackSettings(target);
  if (events === 0)
    throw new UsageError(
      "cannot follow flows: net.netfilter.nf_conntrack_events is 0; set it to 1 with sysctl",
    );
  const gaps = openGaps();
  const cluster = followCluster(asked);
  const visit = (event: FlowEvent, flow: FlowView) => {
    if (!target.families.includes(flow.family)) return;
    const { attribute, eligibilityOf } = cluster.readers()[flow.family];
    const attribution = attribute(flow);
    if (!matches(flow, attribution)) return;
    const now = world.clock.wall();
    const row = rowOf(flow, attribution, { eligibilityOf, now });
    if (row.standing !== "listed" && row.standing !== "other") cluster.mayBeOutdated();
    world.stdout(output === "json" ? lineJson(event, now, row) : eventLine(event, now, row, output));
  };
  await watchFlows({ visit, lost: () => gaps.note(world.clock.wall()) }, signal, placeOf(target));
  if (events === 2)
    world.stderr("! following flows that start from now on: nf_conntrack_events is 2; 1 reports all\n");
  await untilAborted(signal, () => world.stderr(gaps.report()));
  world.stderr(gaps.report());
  return 0;
}

/** The Routes as they are known; read again when a flow leads to something they do not have. */
function followCluster({ view, load, world }: Following): {
  readonly readers: () => FlowReaders;
  readonly mayBeOutdated: () => void;
} {
  let readers = flowReaders(view);
  let loadedAt = world.clock.steady();
  const reload = async () => {
    try {
      readers = flowReaders(await load());
    } catch (error) {
      world.stderr(`! cannot read the cluster again: ${printableLine((error as Error).message)}\n`);
    }
  };
  return {
    readers: () => readers,
    mayBeOutdated() {
      if (world.clock.steady() - loadedAt < reloadMs) return;
      loadedAt = world.clock.steady();
      void reload();
    },
  };
}

/** Times at which the kernel dropped events. */
function openGaps(): { readonly note: (now: number) => void; readonly report: () => string } {
  let gap: { readonly from: number; to: number } | null = null;
  return {
    note(now) {
      gap = { from: gap?.from ?? now, to: now };
    },
    report() {
      if (gap === null) return "";
      const { from, to } = gap;
      gap = null;
      return `! events were lost from ${timeText(from)} to ${timeText(to)}: they arrive faster than they are printed; use a SELECTOR\n`;
    },
  };
}

/** The timer also keeps the process running: a netlink socket does not. */
function untilAborted(signal: AbortSignal, report: () => void): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(report, reportMs);
    const stop = () => {
      clearInterval(timer);
      resolve();
    };
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
  });
}

const eventNames: Readonly<Record<FlowEvent, string>> = { new: "NEW", update: "UPDATE", destroy: "END" };

function eventLine(event: FlowEvent, now: number, row: FlowRow, style: "text" | "wide"): string {
  const service = row.service === null ? "" : `, ${row.service}`;
  const bytes =
    event === "destroy" && row.counters !== null
      ? `, ${quantity(row.counters.original.bytes + row.counters.reply.bytes)} bytes`
      : "";
  const today = `, ${todayText(row, style)}`;
  return `${timeText(now)} ${eventNames[event].padEnd(6)} ${flowLine(row)}${printableLine(service + bytes + today)}\n`;
}

/** One object a line. */
function lineJson(event: FlowEvent, now: number, row: FlowRow): string {
  return `${JSON.stringify({ time: new Date(now).toISOString(), event, ...row })}\n`;
}

/** `10:41:02.123`, in UTC. */
function timeText(now: number): string {
  return new Date(now).toISOString().slice(11, 23);
}
