// What must be settled before the loop can start: this Node, the kernel's settings, the families to serve.

import { availableParallelism } from "node:os";
import type { ValidConfig } from "../config/config.ts";
import { conntrackMaxFile, conntrackTargets, countCpus, withoutLimits } from "../config/resolve/conntrack.ts";
import { isNodeIPUnknown } from "../config/resolve/node-ips.ts";
import { type ConfigWarning, doubtFamilies, doubtNodePorts } from "../config/resolve/sanity.ts";
import { applySysctls, isReadOnly, readSysctl, setOomScore, systemFiles } from "../host/sysctl.ts";
import type { Family } from "../model/address.ts";
import { quoted } from "../model/problem.ts";
import type { ClusterNode } from "../model/snapshot.ts";
import type { SysctlTarget } from "../model/sysctl.ts";
import type { Mode } from "../modes/mode.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log } from "../observe/log/log.ts";
import type { Source } from "../sources/source.ts";
import { type NodeTimeouts, type ReportWait, waitForNode } from "../sources/wait-for-node.ts";
import type { NodeSettings } from "./node-settings.ts";
import { logNode, logSettings, logSysctl } from "./start-log.ts";

/** Something the machine or the cluster lacks that we cannot start without. */
export class StartError extends Error {}

/** Waits for this Node as long as kube-proxy does; null: we go on without it. */
export async function findNode(
  source: Source,
  config: ValidConfig,
  nodeName: string,
  log: Log,
  signal: AbortSignal,
  tell: ReportWait,
  patience: NodeTimeouts,
): Promise<ClusterNode | null> {
  const needs = { podCIDRs: config.detectLocalMode === "NodeCIDR" };
  const { node, missing } = await waitForNode(source, needs, systemClock, signal, tell, patience);
  if (missing === "podCIDRs" || (needs.podCIDRs && missing === "node")) {
    const why = missing === "node" ? "does not exist" : "has no podCIDRs";
    throw new StartError(
      `Cannot start: detectLocalMode NodeCIDR needs podCIDRs, but node ${quoted(nodeName)} ${why}`,
    );
  }
  if (missing !== "nothing") {
    const what = missing === "node" ? "the cluster does not know it" : "it has no addresses";
    log.error(new Error(what), "Node is not as expected; going on with loopback addresses", {
      node: nodeName,
    });
  }
  if (node !== null) logNode(node, log);
  return node;
}

/** Largest number of connections and their time-outs, as configured. */
export function tuneConntrack(config: ValidConfig, log: Log): void {
  warnOfLimit(config, log);
  for (const change of applySysctls(conntrackTargetsOf(config), systemFiles)) logSysctl(change, log);
}

/** Kernel settings that the section `conntrack` means on this machine, as far as they can be set here. */
export function conntrackTargetsOf(config: ValidConfig): readonly SysctlTarget[] {
  const targets = allConntrackTargets(config);
  return isReadOnly(conntrackMaxFile) ? withoutLimits(targets) : targets;
}

/** Only the machine's first network namespace can set the limit on connections. */
function warnOfLimit(config: ValidConfig, log: Log): void {
  const limit = allConntrackTargets(config).find(({ file }) => file === conntrackMaxFile);
  const current = readSysctl(conntrackMaxFile);
  if (limit === undefined || !isReadOnly(conntrackMaxFile) || current === String(limit.value)) return;
  log.info(
    "Warning: cannot set the limit on tracked connections outside the first network namespace; keeping it",
    { current, wanted: limit.value, hint: "set --conntrack-max-per-core=0 and --conntrack-min=0" },
  );
}

function allConntrackTargets({ conntrack }: ValidConfig): readonly SysctlTarget[] {
  const cpus = countCpus(readSysctl("/sys/devices/system/cpu/online")) ?? availableParallelism();
  return conntrackTargets(conntrack, cpus);
}

/** Both families where the machine can do both, else the primary one; doubts about the configuration are told. */
export async function servedFamilies(
  mode: Mode,
  settings: NodeSettings,
  node: ClusterNode | null,
  log: Log,
): Promise<readonly Family[]> {
  const { nodeIPs } = settings.resolved;
  const { primary, addresses } = nodeIPs;
  if (isNodeIPUnknown(nodeIPs))
    log.info("The address of this node is a loopback address", { address: addresses[primary] });
  const supported = await mode.families();
  if (!supported.includes(primary)) {
    throw new StartError(
      `Cannot start: this machine does not support ${primary}, the primary family of this node`,
    );
  }
  const isDualStack = supported.length === 2;
  reportWarnings(warningsOf(settings, node, isDualStack), log);
  log.info(isDualStack ? "Dual-stack" : "Single-stack", { primary, ...addresses });
  const served: readonly Family[] = isDualStack ? ["ipv4", "ipv6"] : [primary];
  logSettings(settings.resolved, settings.config, served, log);
  return served;
}

/** What is odd about the configuration in force, on this node. */
export function warningsOf(
  { config, resolved }: Pick<NodeSettings, "config" | "resolved">,
  node: ClusterNode | null,
  isDualStack: boolean,
): readonly ConfigWarning[] {
  const podCIDRs = node?.podCIDRs ?? [];
  const nodePorts = doubtNodePorts(config, podCIDRs, resolved);
  return [
    ...(nodePorts === null ? [] : [{ message: nodePorts, fatal: false }]),
    ...doubtFamilies(config, podCIDRs, resolved.nodeIPs.primary, isDualStack),
  ];
}

/** Throws StartError for one that we cannot work with. */
export function reportWarnings(doubts: readonly ConfigWarning[], log: Log): void {
  for (const { message, fatal } of doubts) {
    if (fatal) throw new StartError(`Cannot use this configuration: ${message}`);
    log.error(new Error(message), "Configuration does not fit this node");
  }
}

/** The kernel should kill others first; where it does not listen, we work all the same. */
export async function raiseOomScore(score: number, log: Log): Promise<void> {
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  const refused = await setOomScore(score, systemFiles, pause);
  if (refused !== null) log.v(2, "Cannot set the OOM score", { reason: refused.message });
}
