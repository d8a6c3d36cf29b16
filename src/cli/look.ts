// What commands that look at a cluster share: where it is, which node, in which mode, and the Routes there.
import { existsSync } from "node:fs";
import { request } from "node:http";
import { hostname } from "node:os";
import { join } from "node:path";
import { type KnownMode, nodeRoutes } from "../explain/node-routes.ts";
import type { BothRoutes } from "../explain/resolve.ts";
import { type Family, families } from "../model/address.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import { defaultStatusSocket, type Status } from "../observe/status.ts";
import { livingPlaygrounds, namespaceName, namespacePath, statePath } from "../playground/net/namespaces.ts";
import { firstSnapshot } from "../sources/first.ts";
import { openApi, parseSourceSpec, type SourceSpec, userAgentOf } from "../sources/index.ts";
import { realWorld } from "../sources/world.ts";
import { type LookConfig, lookConfig } from "./look-config.ts";
import { Mistake } from "./mistake.ts";
import { readLocalAddresses } from "./node-settings.ts";
import type { OwnFlags } from "./own-flags.ts";
import { isTcpLiberal } from "./start-up.ts";

/** Flags of every command that looks. */
export const lookFlags = ["source", "node", "config", "mode", "cluster-cidr", "o", "output"] as const;

export const lookHelp = `  --source    files:PATH[,PATH…], kubeconfig:PATH, api, a URL, playground (the one that runs here),
              or daemon[:SOCKET] (the one that runs here, default); a daemon's node and configuration count
  --node      the node whose view it is; its Node object gives addresses, pod networks and zone
  --config    the KubeProxyConfiguration that counts instead; without any: the defaults, and the Node's podCIDRs
              tell which pods are its own
  --mode      nftables (default), iptables, ipvs or userspace, whatever the configuration says
  --cluster-cidr  network of all pods, whatever the configuration says
`;

/** Where to look. */
export type Look = {
  readonly spec: SourceSpec;
  readonly node: string;
  readonly config: LookConfig;
  /** Families that the daemon serves, where one was asked. */
  readonly families: readonly Family[];
  /** Network namespace of the node; ours when absent. */
  readonly netns?: string;
};

export type Seen = { readonly look: Look; readonly snapshot: Snapshot; readonly routes: BothRoutes };

export async function lookFrom(given: OwnFlags, version: string, preferredNode?: string): Promise<Look> {
  const source = given.source ?? "daemon";
  if (isPlayground(source)) {
    const pid = playgroundPid(source);
    const home = statePath(pid);
    const node = given.node ?? preferredNode ?? "node-a";
    const spec = specOf(`kubeconfig:${join(home, "kubeconfig")}`, version);
    const netns = namespacePath(namespaceName(node, pid));
    return { spec, node, netns, ...(await asToldBy(join(home, `${node}.sock`), given)) };
  }
  if (/^daemon(:|$)/.test(source)) {
    const socket = source.slice("daemon:".length) || defaultStatusSocket;
    const status = await askDaemon(socket);
    const config = lookConfig(given, status.configuration);
    return {
      spec: specOf(status.source, version),
      node: given.node ?? status.node,
      config,
      families: status.families,
    };
  }
  const spec = specOf(source, version);
  const config = lookConfig(given, null);
  const here = config.hostnameOverride || (spec.kind === "api" ? hostname() : undefined);
  const node = given.node ?? preferredNode ?? here;
  if (node === undefined) throw new Mistake("say for which node, for example --node=node-a");
  return { spec, node, config, families };
}

/** A daemon of the playground may be away for a moment. */
async function asToldBy(socket: string, given: OwnFlags): Promise<Pick<Look, "config" | "families">> {
  const status = await askStatus(socket).catch(() => null);
  const config = lookConfig(given, status?.configuration ?? null);
  return { config, families: status?.families ?? families };
}

/** The cluster now, as a daemon on that node would route it; `live`: with what the machine itself knows of the node. */
export async function lookAt(look: Look, signal: AbortSignal, live = false): Promise<Seen> {
  const snapshot = await firstSnapshot(look.spec, look.node, systemClock, signal);
  const facts = live
    ? {
        localAddresses: await readLocalAddresses(placeOf(look)),
        tcpBeLiberal: look.netns === undefined && isTcpLiberal(),
      }
    : {};
  return { look, snapshot, routes: nodeRoutes(snapshot, look.node, look.config, facts) };
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

/** The mode, if what the kernel should hold follows from the cluster alone. */
export function plannedMode({ config: { mode } }: Look): KnownMode {
  if (mode !== "userspace") return mode;
  throw new Mistake(
    "the kernel cannot be compared in userspace mode: rules lead to ports that only the daemon knows; it compares them itself, and turnout status tells",
  );
}

function specOf(source: string, version: string): SourceSpec {
  try {
    return parseSourceSpec(source, userAgentOf(version));
  } catch (error) {
    throw new Mistake(error instanceof Error ? error.message : String(error));
  }
}
