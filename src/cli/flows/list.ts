// `turnout flows`: reads the conntrack table once, and prints flows or sums of flows.

import type { FlowReading } from "../../host/netlink/visit-flows.ts";
import {
  type ConntrackSettings,
  counted,
  flowReaders,
  readConntrackSettings,
  visitFlows,
} from "../../inspect/flow-table.ts";
import type { NodeView } from "../../inspect/node-view.ts";
import { podNamesOf } from "../../inspect/pod-names.ts";
import { loadRemoved } from "../../inspect/removed-frontends.ts";
import { compareRows, type FlowRow, rowOf } from "../../traffic/flow-row.ts";
import { printRows, printTallies } from "../../traffic/print-rows.ts";
import type { Matches } from "../../traffic/selector.ts";
import { type FlowSums, FlowTally, type PortTally } from "../../traffic/tally.ts";
import type { CommandWorld } from "../commands/kube-proxy.ts";

export type FlowsReading = {
  readonly view: NodeView;
  readonly matches: Matches;
  readonly output: "text" | "wide" | "json";
  readonly world: Pick<CommandWorld, "stdout" | "stderr" | "clock" | "isTerminal">;
  readonly signal: AbortSignal;
};

export async function listFlows(asked: FlowsReading & { readonly limit: number }): Promise<number> {
  const { view, matches, output, world, signal, limit } = asked;
  const settings = await readConntrackSettings(view.target);
  const readers = flowReaders(view, await loadRemoved(view.target));
  const now = world.clock.wall();
  const rows: FlowRow[] = [];
  let matched = 0;
  const visit = (flow: Parameters<Matches>[0]) => {
    const { attribute, eligibilityOf } = readers[flow.family];
    const attribution = attribute(flow);
    if (!matches(flow, attribution)) return;
    matched++;
    if (rows.length < limit) rows.push(rowOf(flow, attribution, { eligibilityOf, now }));
  };
  const reading = await visitFlows(view.target, visit, world, signal);
  const sorted = rows.sort(compareRows);
  const named = output === "text" ? sorted : await withPods(sorted, asked);
  if (output === "json") world.stdout(listJson(view, settings, reading, matched, named));
  else {
    world.stdout(rows.length === 0 ? "No flows.\n" : printRows(named, output));
    world.stderr(notesOn(rows, matched, reading, settings));
  }
  return 0;
}

export async function sumFlows(
  asked: FlowsReading & { readonly by: "service" | "endpoint" },
): Promise<number> {
  const { view, matches, output, world, signal, by } = asked;
  const settings = await readConntrackSettings(view.target);
  const readers = flowReaders(view, await loadRemoved(view.target));
  const tally = new FlowTally();
  const visit = (flow: Parameters<Matches>[0]) => {
    const attribution = readers[flow.family].attribute(flow);
    if (matches(flow, attribution)) tally.add(flow, attribution);
  };
  const reading = await visitFlows(view.target, visit, world, signal);
  if (output === "json") {
    world.stdout(sumsJson(view, settings, reading, tally));
    return 0;
  }
  const ports = [...tally.ports];
  world.stdout(ports.length === 0 ? "No flows of Services.\n" : printTallies(ports, by));
  world.stderr(completeness(reading) + accounting(settings, tally.all.uncounted));
  return 0;
}

async function withPods(
  rows: readonly FlowRow[],
  { view, world, signal }: FlowsReading,
): Promise<readonly FlowRow[]> {
  const services = new Set(
    rows.flatMap(({ service, standing }) =>
      service !== null && standing === "listed" ? [service.split(":")[0]!] : [],
    ),
  );
  if (services.size === 0) return rows;
  const { names, problem } = await podNamesOf(services, view.target, signal);
  if (problem !== null) world.stderr(`! names of pods are missing: ${problem}\n`);
  const addressOf = (endpoint: string) =>
    endpoint.slice(0, endpoint.lastIndexOf(":")).replace(/^\[(.*)\]$/, "$1");
  return rows.map((row) =>
    row.endpoint === null ? row : { ...row, pod: names.get(addressOf(row.endpoint)) ?? null },
  );
}

function notesOn(
  rows: readonly FlowRow[],
  matched: number,
  reading: FlowReading,
  settings: ConntrackSettings,
): string {
  const more = matched - rows.length;
  const rest =
    more > 0
      ? `! ${counted(rows.length)} of ${counted(matched)} flows are printed; use --limit, a SELECTOR or --by=service\n`
      : "";
  const uncounted = rows.filter(({ counters }) => counters === null).length;
  return rest + completeness(reading) + accounting(settings, uncounted);
}

export function completeness({ complete }: FlowReading): string {
  return complete ? "" : "! the table changed while it was read: flows may be missing or printed twice\n";
}

/** Why bytes are missing. */
export function accounting({ accounting: isOn }: ConntrackSettings, uncounted: number): string {
  if (uncounted === 0) return "";
  return isOn === true
    ? `! no bytes for ${counted(uncounted)} of them: started before nf_conntrack_acct was set to 1\n`
    : "! no bytes: nf_conntrack_acct is 0; with 1 the kernel counts flows that start afterwards\n";
}

function listJson(
  { target }: NodeView,
  { accounting: isOn, timestamps }: ConntrackSettings,
  { examined, complete }: FlowReading,
  matched: number,
  flows: readonly FlowRow[],
): string {
  const { node, config } = target;
  const answer = {
    node,
    mode: config.mode,
    accounting: isOn,
    timestamps,
    complete,
    examined,
    matched,
    flows,
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}

function sumsJson(
  { target }: NodeView,
  { accounting: isOn }: ConntrackSettings,
  { examined, complete }: FlowReading,
  tally: FlowTally,
): string {
  const { node, config } = target;
  const keyOf = ({ port }: PortTally) => `${port.key} ${port.family}`;
  const services = [...tally.ports].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).map(portJson);
  const { all, deleted, other } = tally;
  const answer = {
    node,
    mode: config.mode,
    accounting: isOn,
    complete,
    examined,
    all,
    deleted,
    other,
    services,
  };
  return `${JSON.stringify(answer, null, 2)}\n`;
}

function portJson({ port, sums, endpoints }: PortTally): Record<string, unknown> {
  return {
    namespace: port.namespace,
    name: port.name,
    port: port.portName,
    number: port.port,
    protocol: port.protocol,
    family: port.family,
    sums,
    endpoints: [...endpoints]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([endpoint, { to, nodeName, sums: own }]: [
          string,
          { to: string; nodeName: string; sums: FlowSums },
        ]) => ({
          endpoint,
          standing: to === "endpoint" ? "listed" : to,
          node: nodeName === "" ? null : nodeName,
          sums: own,
        }),
      ),
  };
}
