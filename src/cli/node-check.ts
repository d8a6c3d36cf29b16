// `turnout doctor`: reads what the checks of a node need, from its daemon and its kernel. Changes nothing.

import { readdirSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { conntrackTargetsOf } from "../daemon/start/kernel-settings.ts";
import { nodeSettings } from "../explain/node-routes.ts";
import { HostError } from "../host/error.ts";
import { run, starter } from "../host/iptables/command.ts";
import { type Check, checksOf, type NodeFacts } from "../inspect/node-checks.ts";
import { daemonStatus, placeOf, type Target } from "../inspect/target.ts";
import { modes } from "../modes/index.ts";
import { queryDaemon } from "../observe/status/client.ts";
import type { Status } from "../observe/status/status.ts";
import { span } from "./span.ts";

export async function checkNode(
  target: Target,
  now: number,
): Promise<{ readonly status: Status; readonly checks: readonly Check[] }> {
  const status = await daemonStatus(target.socket);
  return { status, checks: checksOf(await factsOf(target, status, now)) };
}

async function factsOf(target: Target, status: Status, now: number): Promise<NodeFacts> {
  const { config } = target;
  const mode = modes[config.mode];
  const targets = [
    ...conntrackTargetsOf(config),
    ...mode.sysctls({ config, settings: await settingsOf(target) }),
  ];
  const read = await readerOf(target, [...targets.map(({ file }) => file), ...otherFiles]);
  return {
    status,
    now,
    release: release(),
    obstacle: await obstacleTo(() => mode.check(placeOf(target))),
    missing: mode.missing(read),
    modules: mode.modules,
    loadedModules: new Set((read("/proc/modules") ?? "").split("\n").map((line) => line.split(" ", 1)[0]!)),
    targets,
    bridges: target.netns === undefined ? bridgesHere() : [],
    read,
    span,
  };
}

/** The Node of the daemon's View is enough: the question itself does not matter. */
async function settingsOf({ socket, node, config }: Target): Promise<ReturnType<typeof nodeSettings>> {
  const view = await queryDaemon(socket, "/view", { from: "node", to: "127.0.0.1:1" }).catch(() => null);
  return nodeSettings({ node: view === null || "kind" in view ? null : view.node }, node, config);
}

/** Read beside the files of kernel settings. */
const otherFiles = [
  "/proc/modules",
  "/proc/net/ip_vs",
  "/proc/sys/net/ipv4/ip_forward",
  "/proc/sys/net/ipv6/conf/all/forwarding",
  "/proc/sys/net/bridge/bridge-nf-call-iptables",
  "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
  "/proc/sys/net/netfilter/nf_conntrack_count",
  "/proc/sys/net/netfilter/nf_conntrack_max",
];

/** A process in the network namespace of the node reads the files: many of them differ there. */
async function readerOf(target: Target, files: readonly string[]): Promise<NodeFacts["read"]> {
  const texts = new Map<string, string>();
  const { stdout } = await run(starter(placeOf(target)), "grep", ["-sH", "", ...files]);
  for (const line of stdout.split("\n").filter((each) => each !== "")) {
    const end = line.indexOf(":");
    const [file, text] = [line.slice(0, end), line.slice(end + 1)];
    texts.set(file, texts.has(file) ? `${texts.get(file)}\n${text}` : text);
  }
  return (file) => texts.get(file) ?? null;
}

/** Of this network namespace: /sys belongs to the one in which it was mounted. */
function bridgesHere(root = "/sys/class/net"): string[] {
  const hasPorts = (name: string) => namesIn(join(root, name, "brif")).length > 0;
  return namesIn(root).filter(hasPorts);
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

async function obstacleTo(attempt: () => Promise<void>): Promise<string | null> {
  try {
    await attempt();
    return null;
  } catch (error) {
    if (error instanceof HostError) return error.message;
    throw error;
  }
}
