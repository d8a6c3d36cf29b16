// What commands that look at a cluster share: where it is, which node, in which mode, and the Routes there.

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { closest } from "../config/closest.ts";
import type { ValidConfig } from "../config/config.ts";
import { gitVersion } from "../config/version.ts";
import { type HostFacts, nodeRoutes, nodeSettings } from "../explain/node-routes.ts";
import { senderText, type To } from "../explain/question.ts";
import type { BothRoutes, Sender } from "../explain/resolve.ts";
import { snapshotOf, type View, viewFor } from "../explain/view.ts";
import { run, starter } from "../host/iptables/command.ts";
import { readLocalAddresses } from "../host/local-addresses.ts";
import { isTcpLiberal, tcpLiberalFile } from "../host/sysctl.ts";
import { kinds } from "../manifests/objects.ts";
import { type Family, families } from "../model/address.ts";
import { printProblem } from "../model/problem.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import { ask, listen } from "../observe/status/client.ts";
import { type Answers, defaultStatusSocket, type Status } from "../observe/status/status.ts";
import { hastyDisk } from "../sources/files/disk.ts";
import { firstSnapshot, firstSnapshots } from "../sources/first.ts";
import { openApi, parseSourceSpec, type SourceSpec, sourceText, userAgentOf } from "../sources/index.ts";
import { nodeNames } from "../sources/node-names.ts";
import { SourceError } from "../sources/source.ts";
import { realWorld } from "../sources/world.ts";
import { daemonNetns } from "./daemon-netns.ts";
import {
  livingPlaygrounds,
  namespaceName,
  namespacePath,
  playgroundNodes,
  statePath,
} from "./playgrounds.ts";
import { type ProgressWorld, type ReportingDisk, withProgress } from "./read-progress.ts";
import { type GivenFlags, targetConfig } from "./target-config.ts";
import { few, UsageError } from "./usage-error.ts";

/** Flags of every command that looks. */
export const targetFlags = ["source", "node", "config", "mode", "cluster-cidr", "o", "output"] as const;
export const targetSwitches = ["anew"] as const;

export const targetHelp = `  --source    files:PATH[,PATH…], kubeconfig:PATH, api, a URL, playground (the one that runs here),
              or daemon[:SOCKET] (what the one that runs here knows, default); its node and configuration count
  --anew      reads what the daemon follows, the API or files, instead of asking what it knows
  --node      the node whose view it is; its Node object gives addresses, pod networks and zone
  --config    the KubeProxyConfiguration that counts instead; without any: the defaults, and the Node's podCIDRs
              tell which pods are its own
  --mode      nftables (default), iptables, ipvs or userspace, whatever the configuration says
  --cluster-cidr  network of all pods, whatever the configuration says
`;

/** What a command line says about a target: flags with a value, and switches. */
export type TargetArguments = { readonly given: GivenFlags; readonly on: ReadonlySet<string> };

/** Where to look. */
export type Target = {
  readonly spec: SourceSpec;
  readonly node: string;
  readonly config: ValidConfig;
  /** Families that the daemon serves, where one was asked. */
  readonly families: readonly Family[];
  /** Where the daemon of the node answers, if it does. */
  readonly socket: string;
  /** Whether the daemon there answers for this very node, so that what it knows can be asked for. */
  readonly fromDaemon: boolean;
  /** Network namespace of the node; ours when absent. */
  readonly netns?: string;
  /** Reads files, and shows on stderr when that takes long. */
  readonly disk: ReportingDisk;
};

export type NodeView = { readonly look: Target; readonly snapshot: Snapshot; readonly routes: BothRoutes };

export async function resolveTarget(
  { given, on }: TargetArguments,
  world: ProgressWorld & { readonly version: string },
  preferredNode?: string,
): Promise<Target> {
  const { version } = world;
  const disk = withProgress(hastyDisk, world, systemClock);
  const source = given.source ?? "daemon";
  if (isPlayground(source)) {
    const pid = playgroundPid(source);
    const home = statePath(pid);
    const node = given.node ?? preferredNode ?? "node-a";
    const spec = specOf(`kubeconfig:${join(home, "kubeconfig")}`, version);
    const netns = namespacePath(namespaceName(node, pid));
    const socket = playgroundSocket(pid, node);
    return { spec, node, socket, netns, disk, fromDaemon: false, ...(await asReportedBy(socket, given)) };
  }
  if (/^daemon(:|$)/.test(source)) {
    const socket = source.slice("daemon:".length) || defaultStatusSocket;
    const status = await askDaemon(socket);
    const config = targetConfig(given, status.configuration);
    const node = given.node ?? status.node;
    return {
      spec: specOf(status.source, version),
      node,
      // One of another version may know it in other words.
      fromDaemon: node === status.node && status.version === gitVersion(version) && !on.has("anew"),
      socket,
      config,
      disk,
      families: servedBy(status),
      ...(on.has("live") ? daemonNetns(status) : {}),
    };
  }
  const spec = specOf(source, version);
  const config = targetConfig(given, null);
  const here = config.hostnameOverride || (spec.kind === "api" ? hostname() : undefined);
  const node = given.node ?? preferredNode ?? here;
  if (node === undefined) {
    const names = await nodeNames(spec, realWorld(systemClock));
    const there = names.length > 1 ? `: there are ${few(names)}` : "";
    throw new UsageError(`say for which node, for example --node=${names[0] ?? "node-a"}${there}`);
  }
  return { spec, node, config, families, disk, fromDaemon: false, socket: defaultStatusSocket };
}

/** A daemon of the playground may be away for a moment. */
async function asReportedBy(socket: string, given: GivenFlags): Promise<Pick<Target, "config" | "families">> {
  const status = await ask(socket, "/").catch(() => null);
  const config = targetConfig(given, status?.configuration ?? null);
  return { config, families: status === null ? families : servedBy(status) };
}

/** A daemon that is still starting may come to serve both. */
function servedBy(status: Status): readonly Family[] {
  return status.families.length === 0 ? families : status.families;
}

/** The cluster now, as a daemon on that node would route it; `live`: with what the machine itself knows of the node. */
export async function loadNode(look: Target, signal: AbortSignal, live = false): Promise<NodeView> {
  const snapshot = await snapshotFrom(look, signal);
  return { look, snapshot, routes: nodeRoutes(snapshot, look.node, look.config, await factsOf(look, live)) };
}

/** All that the daemon knows, where it tells; else what the Source says. */
async function snapshotFrom(look: Target, signal: AbortSignal): Promise<Snapshot> {
  if (!look.fromDaemon) return readSource(look, signal);
  const views: View[] = [];
  try {
    for await (const view of listen(look.socket, "/cluster")) views.push(view ?? knowsNothing());
  } catch (error) {
    throw brokenOff(error, look);
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

/** A daemon may end while it answers. */
function brokenOff(error: unknown, { socket }: Target): Error {
  if (error instanceof UsageError) return error;
  return new SourceError(
    `the daemon at ${socket} broke off its answer (${(error as Error).message}): try again`,
  );
}

function knowsNothing(): never {
  throw new UsageError(
    "the daemon does not know the cluster yet: try again in a moment, or say --anew; turnout status tells what it waits for",
  );
}

async function factsOf(look: Target, live: boolean): Promise<HostFacts> {
  if (!live) return {};
  return {
    localAddresses: await readLocalAddresses(placeOf(look)),
    tcpBeLiberal: await isTcpLiberalAt(look),
  };
}

/** Only a program that starts in another network namespace sees the settings there. */
async function isTcpLiberalAt(look: Target): Promise<boolean> {
  if (look.netns === undefined) return isTcpLiberal();
  const { stdout } = await run(starter(placeOf(look)), "cat", [tcpLiberalFile]);
  return isTcpLiberal(() => stdout.trim());
}

/** Two clusters as a daemon on that node would route them: first one, then the other. */
export async function loadBoth(
  before: Target,
  after: Target,
  signal: AbortSignal,
): Promise<[NodeView, NodeView]> {
  const { node } = before;
  const filesOf = ({ spec, fromDaemon: toldByDaemon }: Target) =>
    spec.kind === "files" && !toldByDaemon ? spec : null;
  const [old, young] = [filesOf(before), filesOf(after)];
  if (old === null || young === null || after.node !== node)
    return [await loadNode(before, signal), await loadNode(after, signal)];
  const snapshots = await firstSnapshots([old, young], node, systemClock, signal, before.disk);
  before.disk.done();
  const routes = nodeRoutes(snapshots[0], node, before.config);
  return [
    { look: before, snapshot: snapshots[0], routes },
    { look: after, snapshot: snapshots[1], routes: nodeRoutes(snapshots[1], node, after.config, {}, routes) },
  ];
}

/** What matters to one question, and how to see the whole. */
export type PartialView = { readonly seen: NodeView; readonly whole: () => Promise<NodeView> };

/** As much of the cluster as answers this question. */
export async function loadPart(
  look: Target,
  { from, to, toText }: { readonly from: Sender; readonly to: To; readonly toText: string },
  signal: AbortSignal,
  live: boolean,
): Promise<PartialView> {
  const facts = await factsOf(look, live);
  if (look.fromDaemon) {
    const view = await ask(look.socket, "/view", { from: senderText(from), to: toText }).catch((error) => {
      throw brokenOff(error, look);
    });
    const snapshot = snapshotOf([view ?? knowsNothing()]);
    const routes = nodeRoutes(snapshot, look.node, look.config, facts);
    return { seen: { look, snapshot, routes }, whole: () => loadNode(look, signal, live) };
  }
  const snapshot = await readSource(look, signal);
  const routesOf = (some: Snapshot) => nodeRoutes(some, look.node, look.config, facts);
  const { ipv4, ipv6 } = nodeSettings(snapshot, look.node, look.config, facts);
  const view = viewFor(snapshot, [ipv4.nodeIP, ipv6.nodeIP], from, to);
  return {
    seen: { look, snapshot, routes: routesOf(snapshotOf([view])) },
    whole: async () => ({ look, snapshot, routes: routesOf(snapshot) }),
  };
}

/** What is unknown when there is no such Node, and which there are; empty when there is one. */
export async function unknownNode({ look, snapshot }: NodeView, where = ""): Promise<string> {
  if (snapshot.node !== null) return "";
  const { node } = look;
  const names = await nodeNames(look.spec, realWorld(systemClock));
  const near = closest(node, names);
  const hint =
    near !== null
      ? `; did you mean --node=${near}?`
      : names.length > 0
        ? `; there ${names.length === 1 ? "is" : "are"} ${few(names)}`
        : "";
  return `! there is no Node ${JSON.stringify(node)}${where}: its addresses, pod networks and zone are not known${hint}\n`;
}

/** What is wrong with the files themselves rather than with an object, a line for each. */
export function fileProblems({ snapshot }: NodeView): string {
  const ofObject = (object: string) => kinds.some((kind) => object.startsWith(`${kind} `));
  const found = snapshot.problems.filter(({ object }) => !ofObject(object));
  return found.map((problem) => `! ${printProblem(problem)}\n`).join("");
}

/** A line when there is nothing to serve; empty when there is. */
export function noServices({ snapshot, look }: NodeView): string {
  if (snapshot.ipv4.ports.size + snapshot.ipv6.ports.size > 0) return "";
  return `! no Services found in ${sourceText(look.spec)} (headless and ExternalName Services do not count)\n`;
}

/** Files that could not be read, in words. */
export function unreadable({ snapshot }: NodeView): string[] {
  return snapshot.problems.filter(({ kind }) => kind === "unreadable").map(printProblem);
}

/** Where the node's kernel is to be found. */
export function placeOf({ netns }: Target): { readonly netns?: string } {
  return netns === undefined ? {} : { netns };
}

/** Whatever the API answers to a GET; null when the Source is no API. Throws CannotReach when it does not answer. */
export async function askApi(
  look: Pick<Target, "spec">,
  path: string,
  signal: AbortSignal,
): Promise<unknown> {
  if (look.spec.kind !== "api") return null;
  try {
    const client = await openApi(look.spec, realWorld(systemClock));
    return await client.json({ method: "GET", path }, signal);
  } catch (error) {
    throw new SourceError((error as Error).message, { cause: error });
  }
}

/** In words when nobody answers. */
export async function askDaemon(
  socket: string,
  instead = "Say where the cluster is, for example --source=files:examples/shop --node=node-a or --source=playground",
): Promise<Status> {
  try {
    return await ask(socket, "/");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES") throw new UsageError(`only root may ask the daemon at ${socket}`);
    const why = existsSync(socket) ? `nobody answers at ${socket}` : `there is no ${socket}`;
    throw new UsageError(`no Turnout runs here: ${why}. ${instead}`);
  }
}

/** `playground`, or `playground:PID` where several run. */
export function isPlayground(source: string): boolean {
  return /^playground(:\d+)?$/.test(source);
}

export function playgroundPid(source: string): number {
  const asked = source.split(":")[1];
  const pid = readPlaygrounds().findLast((each) => asked === undefined || each === Number(asked));
  if (pid === undefined) throw new UsageError("no playground runs here: start one with turnout playground");
  return pid;
}

function readPlaygrounds(): number[] {
  try {
    return livingPlaygrounds();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    throw new UsageError("only root may look at the playground that runs here");
  }
}

/** Where the daemon of one of its nodes answers. */
export function playgroundSocket(pid: number, node: string): string {
  const names: readonly string[] = playgroundNodes;
  if (!names.includes(node))
    throw new UsageError(
      `the playground has no node ${JSON.stringify(node)}; say --node=${names.join(" or --node=")}`,
    );
  return join(statePath(pid), `${node}.sock`);
}

/** The relays of the node, which its daemon alone knows. */
export async function askRelays({ socket }: Pick<Target, "socket">): Promise<Answers["/relays"]> {
  try {
    return await ask(socket, "/relays");
  } catch {
    throw new UsageError(`only the daemon knows its relays, and nobody answers at ${socket}`);
  }
}

function specOf(source: string, version: string): SourceSpec {
  try {
    return parseSourceSpec(source, userAgentOf(version));
  } catch {
    throw new UsageError(
      `cannot use source ${JSON.stringify(source)}: it is not files:PATH[,PATH…], kubeconfig:PATH, api, a URL, playground or daemon[:SOCKET]${filesHint(source)}`,
    );
  }
}

/** For somebody who named a file and not how to read it. */
export function filesHint(source: string): string {
  const path = source.replace(/^files?:/, "");
  return path !== "" && existsSync(path) ? `; did you mean files:${path}?` : "";
}
