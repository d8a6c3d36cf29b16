// What commands that look at a cluster share: where it is, which node, in which mode, and the Routes there.
import { existsSync } from "node:fs";
import { request } from "node:http";
import { hostname } from "node:os";
import { join } from "node:path";
import { type ExplainedMode, judges, type KnownMode, nodeRoutes } from "../explain/node-routes.ts";
import type { BothRoutes } from "../explain/resolve.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import { defaultStatusSocket, type Status } from "../observe/status.ts";
import { livingPlaygrounds, namespaceName, namespacePath, statePath } from "../playground/net/namespaces.ts";
import { firstSnapshot } from "../sources/first.ts";
import { openApi, parseSourceSpec, type SourceSpec, userAgentOf } from "../sources/index.ts";
import { CannotReach } from "../sources/source.ts";
import { realWorld } from "../sources/world.ts";
import type { CommandWorld } from "./command.ts";
import { readLocalAddresses } from "./node-settings.ts";
import type { OwnFlags } from "./own-flags.ts";

/** Flags of every command that looks. */
export const lookFlags = ["source", "node", "mode", "cluster-cidr", "o", "output"] as const;

export const lookHelp = `  --source    files:PATH[,PATH…], kubeconfig:PATH, api, a URL, playground (the one that runs here),
              or daemon[:SOCKET] (the one that runs here, default); what they say of node and mode counts
  --node      the node whose view it is; its Node object gives addresses, pod networks and zone
  --mode      nftables (default), iptables, ipvs or userspace
  --cluster-cidr  network of all pods; without it the Node's podCIDRs tell which pods are its own
`;

/** A mistake in what the user said; the text says how to mend it. */
export class Mistake extends Error {}

/** Where to look. */
export type Look = {
  readonly spec: SourceSpec;
  readonly node: string;
  readonly mode: ExplainedMode;
  readonly clusterCIDR: string;
  /** Network namespace of the node; ours when absent. */
  readonly netns?: string;
};

export type Seen = { readonly look: Look; readonly snapshot: Snapshot; readonly routes: BothRoutes };

export async function lookFrom(given: OwnFlags, version: string, preferredNode?: string): Promise<Look> {
  const source = given.source ?? "daemon";
  const clusterCIDR = given["cluster-cidr"] ?? "";
  const mode = modeOf(given.mode);
  if (isPlayground(source)) {
    const pid = playgroundPid(source);
    const home = statePath(pid);
    const node = given.node ?? preferredNode ?? "node-a";
    const status = await askStatus(join(home, `${node}.sock`)).catch(() => null);
    const spec = specOf(`kubeconfig:${join(home, "kubeconfig")}`, version);
    const netns = namespacePath(namespaceName(node, pid));
    return { spec, node, mode: mode ?? modeOf(status?.mode) ?? "nftables", clusterCIDR, netns };
  }
  const [, socket] = /^daemon(?::(.+))?$/.exec(source) ?? [];
  if (source.startsWith("daemon")) {
    const status = await askDaemon(socket ?? defaultStatusSocket);
    const spec = specOf(status.source, version);
    return {
      spec,
      node: given.node ?? status.node,
      mode: mode ?? modeOf(status.mode) ?? "nftables",
      clusterCIDR,
    };
  }
  const spec = specOf(source, version);
  const node = given.node ?? preferredNode ?? (spec.kind === "api" ? hostname() : undefined);
  if (node === undefined) throw new Mistake("say for which node, for example --node=node-a");
  return { spec, node, mode: mode ?? "nftables", clusterCIDR };
}

/** The cluster now, as a daemon on that node would route it; `live`: with the addresses the node really has. */
export async function lookAt(look: Look, signal: AbortSignal, live = false): Promise<Seen> {
  const snapshot = await firstSnapshot(look.spec, look.node, systemClock, signal);
  const local = live ? await readLocalAddresses(placeOf(look)) : undefined;
  return { look, snapshot, routes: nodeRoutes(snapshot, look.node, look.mode, look.clusterCIDR, local) };
}

/** Where the node's kernel is to be found. */
export function placeOf({ netns }: Look): { readonly netns?: string } {
  return netns === undefined ? {} : { netns };
}

/** Whatever the API answers to a GET; null when the Source is no API. */
export async function askApi(look: Pick<Look, "spec">, path: string, signal: AbortSignal): Promise<unknown> {
  if (look.spec.kind !== "api") return null;
  const client = await openApi(look.spec, realWorld(systemClock));
  return client.json({ method: "GET", path }, signal);
}

/** Asks the daemon behind a socket. */
export function askStatus(socketPath: string): Promise<Status> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, path: "/", timeout: 5_000 }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(JSON.parse(text) as Status));
    });
    call.on("error", reject);
    call.on("timeout", () => call.destroy(new Error("no answer in 5 s")));
    call.end();
  });
}

/** The same, in words when nobody answers. */
export async function askDaemon(socket: string): Promise<Status> {
  try {
    return await askStatus(socket);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EACCES") throw new Mistake(`only root may ask the daemon at ${socket}`);
    const why = existsSync(socket) ? `nobody answers at ${socket}` : `there is no ${socket}`;
    throw new Mistake(
      `no Turnout runs here: ${why}. Say where the cluster is, for example --source=files:examples/shop --node=node-a or --source=playground`,
    );
  }
}

/** `playground`, or `playground:PID` where several run. */
export function isPlayground(source: string): boolean {
  return /^playground(:\d+)?$/.test(source);
}

export function playgroundPid(source: string): number {
  const asked = source.split(":")[1];
  const pid = livingPlaygrounds().findLast((each) => asked === undefined || each === Number(asked));
  if (pid === undefined) throw new Mistake("no playground runs here: start one with turnout playground");
  return pid;
}

/** A command that ends with 1 and a sentence when the user made a mistake, or the cluster is not to be reached. */
export async function withMistakes(
  name: string,
  world: CommandWorld,
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Mistake || error instanceof CannotReach)) throw error;
    world.stderr(`turnout ${name}: ${error.message}\n`);
    return 1;
  }
}

function modeOf(text: string | undefined): ExplainedMode | null {
  if (text === undefined || text === "") return null;
  if (text in judges) return text as ExplainedMode;
  throw new Mistake(`--mode must be nftables, iptables, ipvs or userspace, not ${JSON.stringify(text)}`);
}

/** The mode, if what the kernel should hold follows from the cluster alone. */
export function plannedMode({ mode }: Look): KnownMode {
  if (mode === "nftables" || mode === "iptables") return mode;
  throw new Mistake(unplanned[mode]);
}

const unplanned = {
  userspace: "no Plan can be made for userspace mode: its rules lead to ports that only the daemon knows",
  ipvs: "no Plan of ipvs mode is compared here: look at its servers with ipvsadm -Ln",
} as const;

function specOf(source: string, version: string): SourceSpec {
  try {
    return parseSourceSpec(source, userAgentOf(version));
  } catch (error) {
    throw new Mistake(error instanceof Error ? error.message : String(error));
  }
}
