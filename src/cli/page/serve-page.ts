// Serves the page of a node on loopback until it is interrupted, or prints the URL at which its daemon does.

import { gitVersion } from "../../config/version.ts";
import { daemonSocket } from "../../inspect/status-socket.ts";
import { daemonStatus, isPlayground, resolveTarget } from "../../inspect/target.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { modes } from "../../modes/index.ts";
import { systemClock } from "../../observe/clock.ts";
import type { PageViews } from "../../observe/status/page-views.ts";
import { type PageAddress, parsePageAddress } from "../../page/address.ts";
import { pageFiles } from "../../page/embedded.ts";
import { remoteViews } from "../../page/remote-views.ts";
import { openPage, type Page } from "../../page/server.ts";
import { sourceNode } from "../../page/source-node.ts";
import { NodeViews } from "../../page/views.ts";
import type { CommandWorld } from "../commands/kube-proxy.ts";
import type { pageSpec } from "../commands/page.ts";
import type { Values } from "../flags.ts";

type Flags = Values<typeof pageSpec.flags>;

/** Resolves with the exit code. */
export async function servePage(flags: Flags, world: CommandWorld, signal: AbortSignal): Promise<number> {
  const address = addressOf(flags.address ?? "127.0.0.1:0");
  const socket = await socketOf(flags, world);
  const served = socket === null ? null : await servedBy(socket.path);
  if (served !== null) {
    world.stdout(`${served}\n`);
    return 0;
  }
  const life = new AbortController();
  for (const stop of [signal, ...(flags["until-stdin-ends"] ? [stdinEnd()] : [])])
    stop.addEventListener("abort", () => life.abort(), { once: true });
  const content = socket === null ? await ofSource(flags, world, life.signal) : ofDaemon(socket, flags);
  const opened = await open(content, address);
  world.stdout(`${opened.url}\n`);
  await new Promise<void>((resolve) => {
    if (life.signal.aborted) resolve();
    life.signal.addEventListener("abort", () => resolve(), { once: true });
  });
  await opened.close();
  return 0;
}

function addressOf(text: string): PageAddress {
  const address = parsePageAddress(text);
  if (address !== null) return address;
  throw new UsageError(
    `--address must be a loopback address, for example --address=127.0.0.1:8270, not ${JSON.stringify(text)}`,
  );
}

async function open(content: Page, address: PageAddress) {
  try {
    return await openPage(content, address);
  } catch (error) {
    throw new UsageError(
      `cannot serve the page on port ${address.port}: ${(error as Error).message}; use another --address, or port 0`,
    );
  }
}

type DaemonSocket = { readonly path: string; readonly node: string };

/** null: the Source has no daemon. */
async function socketOf(flags: Flags, world: CommandWorld): Promise<DaemonSocket | null> {
  const { source = "daemon", node: named = "node-a" } = flags;
  const path = daemonSocket(source, named, world);
  if (path === null) return null;
  // The daemon of a node of the playground may be restarting.
  if (isPlayground(source)) return { path, node: named };
  const { node } = await daemonStatus(
    path,
    "start one with turnout run, or specify the cluster, for example --source=files:examples/shop --node=node-a",
  );
  return { path, node };
}

/** The URL at which the daemon itself serves the page; null: nowhere. */
async function servedBy(socket: string): Promise<string | null> {
  const { status, body } = await remoteViews(socket).answer("address", new URLSearchParams());
  return status === 200 ? (JSON.parse(body) as { url: string | null }).url : null;
}

function ofDaemon({ path, node }: DaemonSocket, flags: Flags): Page {
  return content(
    node,
    remoteViews(path),
    flagsOf(flags, ["source", ...(flags.source === undefined ? [] : ["node"])]),
  );
}

async function ofSource(flags: Flags, world: CommandWorld, signal: AbortSignal): Promise<Page> {
  const target = await resolveTarget(flags, world);
  const version = gitVersion(world.version);
  const node = await sourceNode(target, modes[target.config.mode], version, systemClock, signal);
  const views = new NodeViews(node, systemClock);
  const shared = ["source", "node", "config", "mode", "cluster-cidr"];
  return content(target.node, views, flagsOf({ ...flags, node: target.node }, shared));
}

function content(node: string, views: PageViews, flags: string): Page {
  return { files: pageFiles(), nodes: new Map([[node, views]]), flags, act: null };
}

/** With which other commands ask the same node. */
function flagsOf(flags: Flags, names: readonly string[]): string {
  const values = flags as Readonly<Record<string, string | true | undefined>>;
  return names
    .filter((name) => values[name] !== undefined)
    .map((name) => `--${name}=${values[name]}`)
    .join(" ");
}

function stdinEnd(): AbortSignal {
  const ended = new AbortController();
  process.stdin.once("close", () => ended.abort()).resume();
  return ended.signal;
}
