// Loads the cluster of a target, and computes the Routes of its node.

import { closest } from "../config/closest.ts";
import { type HostFacts, nodeRoutes, nodeSettings } from "../explain/node-routes.ts";
import { senderText, type To } from "../explain/question.ts";
import type { BothRoutes, Sender } from "../explain/resolve.ts";
import { snapshotOf, type View, viewFor } from "../explain/view.ts";
import type { NoState } from "../history/entry.ts";
import { run, starter } from "../host/iptables/command.ts";
import { readLocalAddresses } from "../host/local-addresses.ts";
import { isTcpLiberal, tcpLiberalFile } from "../host/sysctl.ts";
import { kinds } from "../manifests/objects.ts";
import { printProblem } from "../model/problem.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import { queryDaemon, streamFromDaemon } from "../observe/status/client.ts";
import { firstSnapshot, firstSnapshots } from "../sources/first.ts";
import { sourceText } from "../sources/index.ts";
import { nodeNames } from "../sources/node-names.ts";
import { SourceError } from "../sources/source.ts";
import { realWorld } from "../sources/world.ts";
import { placeOf, type Target } from "./target.ts";
import { few, UsageError } from "./usage-error.ts";

export type NodeView = {
  readonly target: Target;
  readonly snapshot: Snapshot;
  readonly routes: BothRoutes;
};

/** The current cluster, as a daemon on that node would route it; `live`: with addresses and settings read from the node. */
export async function loadNode(target: Target, signal: AbortSignal, live = false): Promise<NodeView> {
  const snapshot = await loadSnapshot(target, signal);
  const facts = await factsOf(target, live);
  return { target, snapshot, routes: nodeRoutes(snapshot, target.node, target.config, facts) };
}

/** The daemon's copy where it can be used, else the state of the Source. */
async function loadSnapshot(target: Target, signal: AbortSignal): Promise<Snapshot> {
  if (!target.fromDaemon) return readSource(target, signal);
  const views: View[] = [];
  try {
    for await (const view of streamFromDaemon(target.socket, "/cluster", momentOf(target)))
      views.push(known(view));
  } catch (error) {
    throw daemonFailure(error, target);
  }
  return snapshotOf(views);
}

async function readSource({ spec, node, disk }: Target, signal: AbortSignal): Promise<Snapshot> {
  try {
    return await firstSnapshot(spec, node, systemClock, signal, disk);
  } finally {
    disk.done();
  }
}

/** A daemon may exit mid-response. */
function daemonFailure(error: unknown, { socket }: Target): Error {
  if (error instanceof UsageError) return error;
  return new SourceError(`the daemon at ${socket} closed the connection: ${(error as Error).message}; retry`);
}

function notSynced(): never {
  throw new UsageError(
    "the daemon has not read the cluster yet; retry, or use --fresh; turnout status shows what it is waiting for",
  );
}

function known(view: View | NoState | null): View {
  if (view === null) return notSynced();
  if ("kind" in view) throw new UsageError(view.reason);
  return view;
}

/** Parameters of the daemon's socket that select a moment of the past. */
function momentOf({ at }: Target): { readonly at?: string } {
  return at === undefined ? {} : { at: String(at) };
}

async function factsOf(target: Target, live: boolean): Promise<HostFacts> {
  const { traffic } = target;
  if (!live) return { traffic };
  return {
    traffic,
    localAddresses: await readLocalAddresses(placeOf(target)),
    tcpBeLiberal: await isTcpLiberalAt(target),
  };
}

/** The setting of another network namespace can only be read by a process that starts there. */
async function isTcpLiberalAt(target: Target): Promise<boolean> {
  if (target.netns === undefined) return isTcpLiberal();
  const { stdout } = await run(starter(placeOf(target)), "cat", [tcpLiberalFile]);
  return isTcpLiberal(() => stdout.trim());
}

/** Two clusters as a daemon on that node would route them; of files, unchanged parts are parsed and routed once. */
export async function loadBoth(
  before: Target,
  after: Target,
  signal: AbortSignal,
): Promise<[NodeView, NodeView]> {
  const { node } = before;
  const filesOf = ({ spec, fromDaemon }: Target) => (spec.kind === "files" && !fromDaemon ? spec : null);
  const [older, newer] = [filesOf(before), filesOf(after)];
  if (older === null || newer === null || after.node !== node)
    return [await loadNode(before, signal), await loadNode(after, signal)];
  const [first, second] = await firstSnapshots([older, newer], node, systemClock, signal, before.disk);
  before.disk.done();
  const routes = nodeRoutes(first, node, before.config, { traffic: before.traffic });
  return [
    { target: before, snapshot: first, routes },
    {
      target: after,
      snapshot: second,
      routes: nodeRoutes(second, node, after.config, { traffic: after.traffic }, routes),
    },
  ];
}

/** The part of the cluster that one question concerns, and how to load all of it. */
export type PartialView = { readonly view: NodeView; readonly whole: () => Promise<NodeView> };

/** Loads as much of the cluster as answers this question. */
export async function loadPart(
  target: Target,
  { from, to, toText }: { readonly from: Sender; readonly to: To; readonly toText: string },
  signal: AbortSignal,
  live: boolean,
): Promise<PartialView> {
  const facts = await factsOf(target, live);
  const routesOf = (snapshot: Snapshot) => nodeRoutes(snapshot, target.node, target.config, facts);
  if (target.fromDaemon) {
    const query = { from: senderText(from), to: toText, ...momentOf(target) };
    const answer = await queryDaemon(target.socket, "/view", query).catch((error) => {
      throw daemonFailure(error, target);
    });
    const snapshot = snapshotOf([known(answer)]);
    const view = { target, snapshot, routes: routesOf(snapshot) };
    return { view, whole: () => loadNode(target, signal, live) };
  }
  const snapshot = await readSource(target, signal);
  const { ipv4, ipv6 } = nodeSettings(snapshot, target.node, target.config, facts);
  const part = viewFor(snapshot, [ipv4.nodeIP, ipv6.nodeIP], from, to);
  return {
    view: { target, snapshot, routes: routesOf(snapshotOf([part])) },
    whole: async () => ({ target, snapshot, routes: routesOf(snapshot) }),
  };
}

/** A warning when the cluster has no such Node; empty when it has. */
export async function unknownNode({ target, snapshot }: NodeView, where = ""): Promise<string> {
  if (snapshot.node !== null) return "";
  const names = await nodeNames(target.spec, realWorld(systemClock));
  const near = closest(target.node, names);
  const hint =
    near !== null
      ? `; did you mean --node=${near}?`
      : names.length > 0
        ? `; nodes in this cluster: ${few(names)}`
        : "";
  return `! Node ${JSON.stringify(target.node)} not found${where}: its addresses, pod networks and zone are unknown${hint}\n`;
}

/** Problems of the files themselves rather than of an object, one per line. */
export function fileProblems({ snapshot }: NodeView): string {
  const ofObject = (object: string) => kinds.some((kind) => object.startsWith(`${kind} `));
  const found = snapshot.problems.filter(({ object }) => !ofObject(object));
  return found.map((problem) => `! ${printProblem(problem)}\n`).join("");
}

/** A warning when there are no Services; empty when there are. */
export function noServices({ snapshot, target }: NodeView): string {
  if (snapshot.ipv4.ports.size + snapshot.ipv6.ports.size > 0) return "";
  return `! no Services found in ${sourceText(target.spec)} (headless and ExternalName Services do not count)\n`;
}

/** Messages about files that could not be read. */
export function unreadable({ snapshot }: NodeView): string[] {
  return snapshot.problems.filter(({ kind }) => kind === "unreadable").map(printProblem);
}
