// Resolves the flags of a command to a target: a cluster, a node of it, and the configuration of that node.

import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { ValidConfig } from "../config/config.ts";
import type { ModeName } from "../config/modes.ts";
import type { TrafficSetting } from "../config/resolve/settings.ts";
import { gitVersion } from "../config/version.ts";
import { type Family, families } from "../model/address.ts";
import type { Variables } from "../model/environment.ts";
import { modes } from "../modes/index.ts";
import { systemClock } from "../observe/clock.ts";
import { queryDaemon } from "../observe/status/client.ts";
import { type Answers, defaultStatusSocket, type Status } from "../observe/status/status.ts";
import { syncDisk } from "../sources/files/disk.ts";
import { openApi, parseSourceSpec, type SourceSpec, userAgentOf } from "../sources/index.ts";
import { nodeNames } from "../sources/node-names.ts";
import { SourceError } from "../sources/source.ts";
import { realWorld } from "../sources/world.ts";
import { daemonNetns } from "./daemon-netns.ts";
import type { Kernel } from "./kernel-view.ts";
import {
  livingPlaygrounds,
  namespaceName,
  namespacePath,
  playgroundNodes,
  statePath,
} from "./playgrounds.ts";
import { type ProgressWorld, type ReportingDisk, withProgress } from "./read-progress.ts";
import { targetConfig } from "./target-config.ts";
import { few, UsageError } from "./usage-error.ts";

/** Flags that select a target. */
export type TargetFlags = {
  readonly source?: string | undefined;
  readonly node?: string | undefined;
  readonly config?: string | undefined;
  readonly mode?: ModeName | undefined;
  readonly "cluster-cidr"?: string | undefined;
  /** Read the Source of the daemon instead of the daemon's copy. */
  readonly fresh?: boolean;
  /** The kernel of the node is read as well. */
  readonly live?: boolean;
  /** What is counted of Services, instead of what the daemon counts. */
  readonly traffic?: TrafficSetting | undefined;
};

export type Target = {
  readonly spec: SourceSpec;
  readonly node: string;
  readonly config: ValidConfig;
  /** What the daemon counts of Services; off without a daemon. */
  readonly traffic: TrafficSetting;
  /** Families that the daemon serves; both without a daemon. */
  readonly families: readonly Family[];
  /** Status socket of the node's daemon, which may not be running. */
  readonly socket: string;
  /** Whether that daemon serves this node, so that its copy of the cluster can be used. */
  readonly fromDaemon: boolean;
  /** Network namespace of the node; that of this process when absent. */
  readonly netns?: string;
  /** The moment whose state is loaded, in milliseconds since 1970; now when absent. */
  readonly at?: number;
  /** Reads files, and reports progress on stderr when that takes long. */
  readonly disk: ReportingDisk;
};

type TargetWorld = ProgressWorld & { readonly version: string; readonly environment: Variables };

/** Where the daemon of this machine or pod answers: its variable counts for the tools too. */
export function statusSocketOf(environment: Variables): string {
  const variable = "TURNOUT_STATUS_SOCKET";
  return (Object.hasOwn(environment, variable) && environment[variable]) || defaultStatusSocket;
}

/** `preferredNode` is used when `--node` is absent. */
export async function resolveTarget(
  flags: TargetFlags,
  world: TargetWorld,
  preferredNode?: string,
): Promise<Target> {
  const { source = "daemon" } = flags;
  const disk = withProgress(syncDisk, world, systemClock);
  if (isPlayground(source)) return playgroundTarget(source, flags, disk, world, preferredNode);
  if (/^daemon(:|$)/.test(source)) return daemonTarget(source, flags, disk, world);
  return sourceTarget(source, flags, disk, world, preferredNode);
}

async function playgroundTarget(
  source: string,
  flags: TargetFlags,
  disk: ReportingDisk,
  { version }: TargetWorld,
  preferredNode: string | undefined,
): Promise<Target> {
  const pid = playgroundPid(source);
  const node = flags.node ?? preferredNode ?? "node-a";
  const spec = parseSource(`kubeconfig:${join(statePath(pid), "kubeconfig")}`, version);
  const netns = namespacePath(namespaceName(node, pid));
  const socket = playgroundSocket(pid, node);
  // The daemon of a node may be restarting.
  const status = await queryDaemon(socket, "/").catch(() => null);
  const config = targetConfig(flags, status?.configuration ?? null);
  const served = status === null ? families : servedFamilies(status);
  const traffic = flags.traffic ?? status?.traffic ?? "off";
  return { spec, node, socket, netns, disk, config, traffic, families: served, fromDaemon: false };
}

async function daemonTarget(
  source: string,
  flags: TargetFlags,
  disk: ReportingDisk,
  { version, environment }: TargetWorld,
): Promise<Target> {
  const socket = source.slice("daemon:".length) || statusSocketOf(environment);
  const status = await daemonStatus(socket);
  const node = flags.node ?? status.node;
  // A daemon of another version may use another format.
  const isSameVersion = status.version === gitVersion(version);
  return {
    spec: parseSource(status.source, version),
    node,
    fromDaemon: node === status.node && isSameVersion && !flags.fresh,
    socket,
    config: targetConfig(flags, status.configuration),
    traffic: flags.traffic ?? status.traffic ?? "off",
    disk,
    families: servedFamilies(status),
    ...(flags.live ? daemonNetns(status) : {}),
  };
}

async function sourceTarget(
  source: string,
  flags: TargetFlags,
  disk: ReportingDisk,
  { version, environment }: TargetWorld,
  preferredNode: string | undefined,
): Promise<Target> {
  const spec = parseSource(source, version);
  const config = targetConfig(flags, null);
  const here = config.hostnameOverride || (spec.kind === "api" ? hostname() : undefined);
  const node = flags.node ?? preferredNode ?? here;
  if (node === undefined) throw new UsageError(await nodeRequired(spec));
  const { traffic = "off" } = flags;
  const socket = statusSocketOf(environment);
  return { spec, node, config, traffic, families, disk, fromDaemon: false, socket };
}

async function nodeRequired(spec: SourceSpec): Promise<string> {
  const names = await nodeNames(spec, realWorld(systemClock));
  return names.length === 0
    ? "--node is required, for example --node=node-a"
    : `--node is required; nodes in this cluster: ${few(names)}`;
}

/** A daemon that is starting has not yet determined its families. */
function servedFamilies(status: Status): readonly Family[] {
  return status.families.length === 0 ? families : status.families;
}

/** Options that select the network namespace of the node. */
export function placeOf({ netns }: Target): { readonly netns?: string } {
  return netns === undefined ? {} : { netns };
}

/** The kernel of the node. */
export function kernelOf(target: Target): Kernel {
  const { config } = target;
  return { at: placeOf(target), config, mode: modes[config.mode], relays: () => relaysOf(target) };
}

/** The API server's response to a GET; null when the Source is not an API. Throws SourceError. */
export async function getFromApi(
  { spec }: Pick<Target, "spec">,
  path: string,
  signal: AbortSignal,
): Promise<unknown> {
  if (spec.kind !== "api") return null;
  try {
    const client = await openApi(spec, realWorld(systemClock));
    return await client.json({ method: "GET", path }, signal);
  } catch (error) {
    throw new SourceError((error as Error).message, { cause: error });
  }
}

/** Throws UsageError with `advice` when no daemon responds. */
export async function daemonStatus(
  socket: string,
  advice = "specify the cluster, for example --source=files:examples/shop --node=node-a or --source=playground",
): Promise<Status> {
  try {
    return await queryDaemon(socket, "/");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES")
      throw new UsageError(`cannot connect to the daemon at ${socket}: permission denied; run as root`);
    const cause = existsSync(socket) ? `${socket} does not respond` : `${socket} does not exist`;
    throw new UsageError(`no daemon is running on this machine: ${cause}; ${advice}`);
  }
}

/** The relays of the node, which only its daemon has. */
export async function relaysOf({ socket }: Pick<Target, "socket">): Promise<Answers["/relays"]> {
  try {
    return await queryDaemon(socket, "/relays");
  } catch {
    throw new UsageError(
      `cannot read the relays: the daemon at ${socket} does not respond; in userspace mode --live requires it`,
    );
  }
}

/** `playground`, or `playground:PID` where several are running. */
export function isPlayground(source: string): boolean {
  return /^playground(:\d+)?$/.test(source);
}

export function playgroundPid(source: string): number {
  const wanted = source.split(":")[1];
  const pid = runningPlaygrounds().findLast((each) => wanted === undefined || each === Number(wanted));
  if (pid === undefined)
    throw new UsageError("no playground is running on this machine; start one with turnout playground");
  return pid;
}

function runningPlaygrounds(): number[] {
  try {
    return livingPlaygrounds();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EACCES") throw error;
    throw new UsageError("cannot read the playground's files: permission denied; run as root");
  }
}

/** Status socket of one of its nodes. */
export function playgroundSocket(pid: number, node: string): string {
  const names: readonly string[] = playgroundNodes;
  if (!names.includes(node))
    throw new UsageError(
      `the playground has no node ${JSON.stringify(node)}; use --node=${names.join(" or --node=")}`,
    );
  return join(statePath(pid), `${node}.sock`);
}

function parseSource(source: string, version: string): SourceSpec {
  try {
    return parseSourceSpec(source, userAgentOf(version));
  } catch {
    throw new UsageError(
      `invalid source ${JSON.stringify(source)}: must be files:PATH[,PATH…], kubeconfig:PATH, api, a URL, playground or daemon[:SOCKET]${filesHint(source)}`,
    );
  }
}

/** For a path without the prefix `files:`. */
export function filesHint(source: string): string {
  const path = source.replace(/^files?:/, "");
  return path !== "" && existsSync(path) ? `; did you mean files:${path}?` : "";
}
