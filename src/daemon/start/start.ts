// What must be settled before the loop can start: this Node, its settings, and the families to serve.

import type { ValidConfig } from "../../config/config.ts";
import { isNodeIPUnknown } from "../../config/resolve/node-ips.ts";
import { milliseconds } from "../../config/units/duration.ts";
import { type LocalAddresses, readLocalAddresses } from "../../host/local-addresses.ts";
import { isTcpLiberal } from "../../host/sysctl.ts";
import type { Family } from "../../model/address.ts";
import { quoted } from "../../model/problem.ts";
import type { ClusterNode } from "../../model/snapshot.ts";
import type { SysctlChange } from "../../model/sysctl.ts";
import type { Driver } from "../../modes/driver.ts";
import { modes } from "../../modes/index.ts";
import type { Mode, ModeOptions } from "../../modes/mode.ts";
import { systemClock } from "../../observe/clock.ts";
import type { Log } from "../../observe/log/log.ts";
import type { SourceSpec } from "../../sources/index.ts";
import type { Source } from "../../sources/source.ts";
import { kubeProxyTimeouts, noTimeouts, waitForNode } from "../../sources/wait-for-node.ts";
import { reportWarnings, warningsOf } from "../config/config-warnings.ts";
import type { DaemonOptions } from "../daemon.ts";
import { NodeSettings } from "../node-settings.ts";
import { logSysctl, startAccounting, tuneConntrack } from "./kernel-settings.ts";
import { StartError } from "./start-error.ts";
import { logNode, logSettings } from "./start-log.ts";
import type { StartUpStatus } from "./startup-status.ts";

/** This node as start-up found it. */
export type StartedNode = {
  readonly spec: SourceSpec;
  readonly nodeName: string;
  readonly source: Source;
  /** null: the cluster has no such Node. */
  readonly node: ClusterNode | null;
  readonly settings: NodeSettings;
  readonly families: readonly Family[];
  readonly mode: Mode;
  readonly localAddresses: LocalAddresses;
  /** Prepares the machine for the mode, with the settings in force. */
  readonly prepare: () => Promise<void>;
  readonly openDrivers: () => Promise<ReadonlyMap<Family, Driver>>;
};

/** With the drivers of its mode; `owned`: the kernel lets no other program change our table. */
export type OpenNode = StartedNode & {
  readonly drivers: ReadonlyMap<Family, Driver>;
  readonly owned: boolean;
};

/** Waits for this Node, then prepares the machine for the mode. */
export async function startNode(
  options: DaemonOptions,
  { spec, nodeName, source }: Pick<StartedNode, "spec" | "nodeName" | "source">,
  startUp: StartUpStatus,
  log: Log,
  signal: AbortSignal,
): Promise<StartedNode> {
  const { config } = options;
  const mode = modes[config.mode];
  const node = await findNode(source, config, spec, startUp, log, signal);
  startUp.foundNode();
  const localAddresses = await readLocalAddresses({});
  const settings = new NodeSettings(config, {
    nodeName,
    nodeIPs: node?.addresses ?? [],
    podCIDRs: node?.podCIDRs ?? [],
    zone: node?.zone ?? "",
    localAddresses,
    tcpBeLiberal: isTcpLiberal(),
    traffic: options.traffic ?? "off",
  });
  tuneConntrack(config, log.in("daemon/start/kernel-settings.ts"));
  startAccounting(options.traffic ?? "off", log.in("daemon/start/kernel-settings.ts"));
  const families = await servedFamilies(mode, settings, node, log);
  const modeOptions = () => modeOptionsOf(options, settings, families, log);
  const prepare = () => mode.prepare(modeOptions());
  await prepare();
  const openDrivers = async () => {
    const drivers = new Map<Family, Driver>();
    for (const family of families) drivers.set(family, await mode.open(family, modeOptions()));
    return drivers;
  };
  return { spec, nodeName, source, node, settings, families, mode, localAddresses, prepare, openDrivers };
}

/** Waits for this Node as long as kube-proxy does; null: start without it. */
async function findNode(
  source: Source,
  config: ValidConfig,
  spec: SourceSpec,
  startUp: StartUpStatus,
  log: Log,
  signal: AbortSignal,
): Promise<ClusterNode | null> {
  const nodeName = startUp.facts.node;
  const needs = { podCIDRs: config.detectLocalMode === "NodeCIDR" };
  const timeouts = spec.kind === "files" ? noTimeouts : kubeProxyTimeouts;
  const { waitsForNode } = startUp;
  const { node, missing } = await waitForNode(source, needs, systemClock, signal, waitsForNode, timeouts);
  if (missing === "podCIDRs" || (needs.podCIDRs && missing === "node")) {
    const why = missing === "node" ? "does not exist" : "has no podCIDRs";
    throw new StartError(
      `Cannot start: detectLocalMode NodeCIDR needs podCIDRs, but node ${quoted(nodeName)} ${why}`,
    );
  }
  if (missing !== "nothing") {
    const what = missing === "node" ? "it does not exist in the cluster" : "it has no addresses";
    log.error(new Error(what), "Node is incomplete; using loopback addresses", {
      node: nodeName,
    });
  }
  if (node !== null) logNode(node, log);
  return node;
}

/** Both families where the machine supports both, else the primary one. Reports warnings about the configuration. */
async function servedFamilies(
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

function modeOptionsOf(
  { config, owned = false }: DaemonOptions,
  settings: NodeSettings,
  families: readonly Family[],
  log: Log,
): ModeOptions {
  return {
    config,
    families,
    syncPeriodMs: () => milliseconds(settings.config.syncPeriod),
    settings: settings.resolved.settings,
    clock: systemClock,
    owned,
    warn: (what: string) => log.error(new Error(what), "Continuing without it"),
    sysctlChanged: (change: SysctlChange) => logSysctl(change, log),
  };
}
