// `turnout doctor flows`: finds tracked flows that lead nowhere, and deletes those that the command line names.

import { FlowCleaner } from "../../host/netlink/conntrack.ts";
import { type ConntrackStats, readConntrackStats } from "../../host/netlink/conntrack-stats.ts";
import { type FlowReaders, flowReaders, visitFlows } from "../../inspect/flow-table.ts";
import { loadNode, type NodeView, unknownNode } from "../../inspect/node-view.ts";
import { loadRemoved } from "../../inspect/removed-frontends.ts";
import { placeOf, resolveTarget, type Target, type TargetFlags } from "../../inspect/target.ts";
import { alternatives, UsageError } from "../../inspect/usage-error.ts";
import { families, joinHostPort, parseAddress } from "../../model/address.ts";
import type { FlowView } from "../../model/flow.ts";
import { endpointKey, portLabel } from "../../model/snapshot.ts";
import { modes } from "../../modes/index.ts";
import { activityOf, protocolOf } from "../../traffic/activity.ts";
import type { Attribution } from "../../traffic/attribute.ts";
import {
  type Finding,
  type FlowClass,
  findingOf,
  flowClasses,
  type KeptAlive,
  mayDelete,
} from "../../traffic/classify.ts";
import { FlowNames } from "../../traffic/flow-names.ts";
import { rowOf } from "../../traffic/flow-row.ts";
import { keptAliveByEntry, UnrepliedReadings } from "../../traffic/kept-alive.ts";
import {
  type Deletion,
  exitCodeOf,
  FlowFindings,
  type FlowReport,
  printReport,
} from "../../traffic/report.ts";
import type { CommandWorld } from "../commands/kube-proxy.ts";

export type FlowDoctorFlags = TargetFlags & {
  readonly delete?: string | undefined;
  readonly "reset-tcp"?: string | undefined;
  readonly wait?: string | undefined;
  readonly output?: "text" | "json";
};

type Task = {
  readonly target: Target;
  readonly world: CommandWorld;
  readonly signal: AbortSignal;
};

export async function doctorFlows(
  flags: FlowDoctorFlags,
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const order = orderOf(flags);
  const seconds = secondsOf(flags.wait);
  const missing = world.missingRights();
  if (missing !== null) throw new UsageError(`cannot read conntrack: ${missing}`);
  const target = await resolveTarget({ ...flags, live: true }, world);
  const task = { target, world, signal };
  const view = await loadNode(target, signal, true);
  world.stderr(await unknownNode(view));
  if (modes[target.config.mode].conntrack === "own")
    world.stderr("! in this mode connections end at sockets of Turnout: conntrack does not show endpoints\n");
  if (order !== null) refuseLivingEndpoint(order, view);
  const { report, keptAlive, candidates } = await examine(task, view, seconds, order);
  const deletion = order === null ? null : await remove(task, order, candidates, keptAlive);
  const { node, config } = target;
  const whole = { node, mode: config.mode, ...report, deletion };
  world.stdout(
    flags.output === "json"
      ? `${JSON.stringify(whole, null, 2)}\n`
      : printReport({ node, mode: config.mode }, report, deletion),
  );
  return exitCodeOf(report, deletion);
}

/** What to delete. */
type Order = {
  readonly classes: ReadonlySet<FlowClass>;
  /** `address:port` of an endpoint whose TCP connections are reset; null: none. */
  readonly endpoint: string | null;
};

/** Throws UsageError; null: nothing is to be deleted. */
function orderOf({ delete: named, "reset-tcp": place }: FlowDoctorFlags): Order | null {
  if (named === undefined && place === undefined) return null;
  const known: readonly string[] = flowClasses;
  const names = named?.split(",").filter((name) => name !== "") ?? [];
  const wrong = names.find((name) => !known.includes(name));
  if (wrong !== undefined || (named !== undefined && names.length === 0))
    throw new UsageError(
      `--delete must be ${alternatives(known)}, or several with commas, not ${JSON.stringify(wrong ?? named)}`,
    );
  const endpoint = place === undefined ? null : endpointIn(place);
  return { classes: new Set(names as readonly FlowClass[]), endpoint };
}

function endpointIn(text: string): string {
  const [, host = "", port = ""] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  const address = parseAddress(host.replace(/^\[(.*)\]$/, "$1"));
  if (address === null || Number(port) < 1 || Number(port) > 65_535)
    throw new UsageError(
      `--reset-tcp must be the address and port of an endpoint, for example --reset-tcp=10.0.1.5:8080, not ${JSON.stringify(text)}`,
    );
  return joinHostPort(address, Number(port));
}

function secondsOf(text = "5"): number {
  if (!/^\d{1,3}$/.test(text) || Number(text) > 300)
    throw new UsageError(`--wait must be a number of seconds up to 300, for example --wait=30`);
  return Number(text);
}

function refuseLivingEndpoint({ endpoint }: Order, { routes }: NodeView): void {
  if (endpoint === null) return;
  for (const family of families)
    for (const port of routes[family].servicePorts.values())
      if (port.protocol === "tcp" && port.endpoints.some((each) => endpointKey(each) === endpoint))
        throw new UsageError(
          `cannot reset connections to ${endpoint}: it is an endpoint of ${portLabel(port)}; --reset-tcp is for endpoints that are gone`,
        );
}

type Examined = {
  readonly report: FlowReport;
  readonly keptAlive: KeptAlive;
  /** Flows that may be deleted, as far as they were seen before the cluster is read again. */
  readonly candidates: FlowNames;
};

/** Two readings, if some flows are unreplied and their entries do not show for how long. */
async function examine(
  { target, world, signal }: Task,
  view: NodeView,
  seconds: number,
  order: Order | null,
): Promise<Examined> {
  const readers = flowReaders(view, await loadRemoved(view.target));
  const place = placeOf(target);
  const byEntry = keptAliveByEntry(world.clock.wall());
  const before = await readConntrackStats(place, signal);
  const unreplied = new UnrepliedReadings();
  if (seconds > 0) {
    const note = (flow: FlowView) => {
      if (activityOf(flow) === "opening" && byEntry(flow) === null && isClaimed(flow, readers))
        unreplied.note(flow);
    };
    await visitFlows(target, note, world, signal);
  }
  const isWaiting = seconds > 0 && (!unreplied.isEmpty || isPressed(before));
  if (isWaiting) await pause(seconds * 1000, signal);
  if (unreplied.skipped > 0)
    world.stderr(`! ${unreplied.skipped} unreplied flows were not examined: there are too many\n`);
  const bySecond = unreplied.keptAlive(seconds);
  const keptAlive: KeptAlive = (flow) => byEntry(flow) ?? bySecond(flow);
  const candidates = new FlowNames();
  const findings = await classify({ target, world, signal }, readers, keptAlive, order, candidates);
  const now = await readConntrackStats(place, signal);
  const report = findings.report(now, isWaiting ? { facts: before, seconds } : null);
  return { report, keptAlive, candidates };
}

async function classify(
  { target, world, signal }: Task,
  readers: FlowReaders,
  keptAlive: KeptAlive,
  order: Order | null,
  candidates: FlowNames,
): Promise<FlowFindings> {
  const findings = new FlowFindings();
  const now = world.clock.wall();
  const visit = (flow: FlowView) => {
    const { attribute, eligibilityOf } = readers[flow.family];
    const attribution = attribute(flow);
    const finding = findingOf(flow, attribution, eligibilityOf, keptAlive);
    findings.add(flow, attribution, finding, () => rowOf(flow, attribution, { eligibilityOf, now }));
    if (order !== null && isOrdered(order, flow, attribution, finding)) candidates.add(flow);
  };
  const { complete } = await visitFlows(target, visit, world, signal);
  if (!complete) world.stderr("! the table changed while it was read: flows may be missing\n");
  return findings;
}

function isClaimed(flow: FlowView, readers: FlowReaders): boolean {
  return readers[flow.family].attribute(flow).kind !== "other";
}

/** Whether it is worth reading the counters again. */
function isPressed({ drop, earlyDrop, insertFailed }: ConntrackStats): boolean {
  return drop + earlyDrop + insertFailed > 0;
}

function isOrdered(order: Order, flow: FlowView, attribution: Attribution, finding: Finding | null): boolean {
  if (finding !== null && order.classes.has(finding.class) && mayDelete(flow)) return true;
  return order.endpoint !== null && isDeadConnection(flow, attribution, order.endpoint);
}

/** A TCP connection to an endpoint that is gone. */
function isDeadConnection(flow: FlowView, attribution: Attribution, endpoint: string): boolean {
  const isGone =
    attribution.kind === "deleted" || (attribution.kind === "service" && attribution.to.kind === "gone");
  return (
    isGone && protocolOf(flow) === "tcp" && joinHostPort(flow.replySource, flow.replySourcePort) === endpoint
  );
}

/**
 * Deletes flows that the first reading found and that are still findings by the cluster as it is now: a flow that started later may lead
 * to an endpoint that is newer than what was read.
 */
async function remove(
  { target, signal }: Task,
  order: Order,
  candidates: FlowNames,
  keptAlive: KeptAlive,
): Promise<Deletion> {
  const view = await loadNode(target, signal, true);
  refuseLivingEndpoint(order, view);
  const readers = flowReaders(view, await loadRemoved(view.target));
  const cleaner = new FlowCleaner(placeOf(target));
  let [deleted, kept] = [0, 0];
  const select = (flow: FlowView) => {
    const { attribute, eligibilityOf } = readers[flow.family];
    const attribution = attribute(flow);
    const finding = findingOf(flow, attribution, eligibilityOf, keptAlive);
    const isNamed = isOrdered(order, flow, attribution, finding);
    if (!isNamed && finding !== null && order.classes.has(finding.class)) kept++;
    return isNamed && candidates.has(flow);
  };
  try {
    for (const family of target.families)
      deleted += (await cleaner.clean({ family, select }, signal)).deleted;
  } finally {
    await cleaner.close();
  }
  const named = [...order.classes, ...(order.endpoint === null ? [] : [`tcp to ${order.endpoint}`])];
  return { named, deleted, kept };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        reject(new UsageError("interrupted"));
      },
      { once: true },
    );
  });
}
