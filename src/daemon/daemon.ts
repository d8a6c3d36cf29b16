// The daemon behind kube-proxy and `turnout run`: starts everything in order, and ends it with the right exit code.

import type { Completed } from "../config/complete.ts";
import type { ValidConfig } from "../config/config.ts";
import type { ResolvedGates } from "../config/gates/gates.ts";
import { milliseconds } from "../config/units/duration.ts";
import { HostError } from "../host/error.ts";
import { readLocalAddresses } from "../host/local-addresses.ts";
import { isTcpLiberal } from "../host/sysctl.ts";
import type { Family } from "../model/address.ts";
import type { SysctlChange } from "../model/sysctl.ts";
import type { Driver } from "../modes/driver.ts";
import { modes } from "../modes/index.ts";
import type { Mode } from "../modes/mode.ts";
import { nothingRemoved } from "../modes/removed.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log, OpenLog } from "../observe/log/log.ts";
import { followSource } from "../observe/source-log.ts";
import { StatusSocket } from "../observe/status/socket.ts";
import { openSource, type SourceSpec, userAgentOf } from "../sources/index.ts";
import { SourceError } from "../sources/source.ts";
import { kubeProxyTimeouts, noTimeouts } from "../sources/wait-for-node.ts";
import { realWorld, type World } from "../sources/world.ts";
import type { WatchedFile } from "./config-file.ts";
import { ownNodeName } from "./node-name.ts";
import { NodeSettings } from "./node-settings.ts";
import { Running } from "./running.ts";
import { signalOf } from "./signals.ts";
import { findNode, StartError, servedFamilies, tuneConntrack } from "./start.ts";
import { logStart, logSysctl } from "./start-log.ts";
import { StartUpStatus } from "./startup-status.ts";

export type DaemonOptions = {
  readonly config: ValidConfig;
  readonly gates: ResolvedGates;
  /** `--master`: URL of the API server; empty for none. */
  readonly master: string;
  readonly cleanup: boolean;
  readonly initOnly: boolean;
  /** null without `--config`. */
  readonly configFile: WatchedFile | null;
  /** The configuration that flags and another text of the file give. */
  readonly complete: (text: string) => Completed;
  /** When the file changes: exit with 1; apply in place and exit with 1 for the rest; or apply in place only. */
  readonly configChanges?: "restart" | "apply" | "apply-live-only";
  /** Every flag with its text, for /flagz. */
  readonly flags: ReadonlyMap<string, string>;
  /** The version to report: to the API server, in metrics and on /statusz. */
  readonly version: string;
  readonly log: OpenLog;
  /** Where cluster state comes from; the Kubernetes API when absent. */
  readonly source?: SourceSpec;
  readonly healthAnswers?: "honest" | "upstream";
  /** nftables: the table is ours alone while we run. */
  readonly owned?: boolean;
  /** Where `turnout status` can ask; empty: nowhere. */
  readonly statusSocket?: string;
};

/** Resolves with the exit code. */
export async function runDaemon(options: DaemonOptions, signal: AbortSignal): Promise<number> {
  const log = options.log.log.in("daemon/daemon.ts");
  signal.addEventListener("abort", () => logSignal(options.log, signal.reason), { once: true });
  try {
    return options.cleanup ? await cleanUp(log) : await start(options, log, signal);
  } catch (error) {
    if (signal.aborted) return 0;
    if (!(error instanceof HostError) && !(error instanceof StartError)) throw error;
    log.error(error, "command failed");
    return 1;
  }
}

function logSignal({ log, flush }: OpenLog, reason: unknown): void {
  const signal = signalOf(reason);
  if (signal === null) return;
  log.in("daemon/daemon.ts").info("Received a signal; exiting, rules stay in place", { signal });
  flush();
}

/** `--cleanup`: every mode, whatever the others say. */
async function cleanUp(log: Log): Promise<number> {
  let code = 0;
  for (const [name, mode] of Object.entries(modes)) {
    try {
      const removed = await mode.cleanup({ keep: null });
      if (nothingRemoved(removed)) log.info("Nothing to remove", { mode: name });
      else log.info("Removed what the mode had put on this node", { mode: name, ...removed });
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      log.error(error, "Cannot clean up", { mode: name });
      code = 1;
    }
  }
  return code;
}

async function start(options: DaemonOptions, log: Log, signal: AbortSignal): Promise<number> {
  const { config } = options;
  const mode = modes[config.mode];
  logStart(options, log);

  // Requests are made before there is anybody to tell of them: the search for this Node comes first.
  let running: Running | null = null;
  const world: World = {
    ...realWorld(systemClock),
    onRequest: (facts) => running?.requested(facts),
    onWarning: onceEach((text) => log.error(new Error(text), "Connection to the API server is not secure")),
  };
  const spec = options.source ?? apiSpec(options);
  const nodeName = await ownNodeName(config, spec, world, log);
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort(), { once: true });
  const startLog = log.in("daemon/start.ts");
  const startUp = new StartUpStatus(options, spec, nodeName, startLog);
  const status = new StatusSocket(options.statusSocket ?? "", startUp.answering, log);
  await status.open();
  try {
    const source = await openSource(spec, nodeName, world, life.signal).catch((error: unknown) => {
      if (!(error instanceof SourceError)) throw error;
      throw new StartError(`Cannot reach the cluster: ${error.message}`);
    });
    startUp.opened(source);
    if (spec.kind === "api") followSource(source, systemClock, log.in("observe/source-log.ts"), life.signal);
    const cleared = removeLeftovers(config, log, ([, { conntrack }]) => conntrack === "own", life.signal);
    const patience = spec.kind === "files" ? noTimeouts : kubeProxyTimeouts;
    const waits = startUp.waitsForNode;
    const node = await findNode(source, config, nodeName, startLog, life.signal, waits, patience);
    startUp.foundNode();
    const localAddresses = await readLocalAddresses({});
    const settings = new NodeSettings(config, {
      nodeName,
      nodeIPs: node?.addresses ?? [],
      podCIDRs: node?.podCIDRs ?? [],
      zone: node?.zone ?? "",
      localAddresses,
      tcpBeLiberal: isTcpLiberal(),
    });
    tuneConntrack(config, startLog);
    const families = await servedFamilies(mode, settings, node, startLog);
    const modeOptions = () => ({
      config,
      families,
      syncPeriodMs: () => milliseconds(settings.config.syncPeriod),
      settings: settings.resolved.settings,
      clock: systemClock,
      owned: options.owned ?? false,
      tell: (what: string) => log.error(new Error(what), "Going on without"),
      sysctlChanged: (change: SysctlChange) => logSysctl(change, log),
    });
    const prepare = () => mode.prepare(modeOptions());
    await prepare();
    if (options.initOnly) {
      log.info("Initialized; exiting because of --init-only");
      return 0;
    }
    await cleared;
    const drivers = new Map<Family, Driver>();
    for (const family of families) drivers.set(family, await mode.open(family, modeOptions()));
    running = new Running(
      { ...options, owned: isOwned(drivers, options, log) },
      spec,
      {
        world,
        nodeName,
        node,
        source,
        status,
        startUp,
        settings,
        families,
        drivers,
        mode,
        prepare,
        localAddresses,
        removeLeftovers: () =>
          removeLeftovers(config, log, ([, { conntrack }]) => conntrack === "shared", life.signal),
      },
      log,
    );
    return await running.untilEnd(life.signal);
  } finally {
    status.close();
    life.abort();
  }
}

/** Passes each text on once, however often it comes. */
function onceEach(pass: (text: string) => void): (text: string) => void {
  const passed = new Set<string>();
  return (text) => {
    if (passed.has(text)) return;
    passed.add(text);
    pass(text);
  };
}

/** What is in force, which is not always what was asked for. */
function isOwned(drivers: ReadonlyMap<Family, Driver>, { owned = false }: DaemonOptions, log: Log): boolean {
  const inForce = [...drivers.values()].every((driver) => driver.report().tableOwned);
  if (owned && !inForce) {
    const why = new Error("only nftables mode can, on Linux 6.9 and later");
    log.error(why, "The table cannot be owned here: it is plain, and foreign changes are repaired");
  }
  return inForce;
}

/** How often to look whether the last connections through another mode have ended. */
const retreatEveryMs = 60_000;

/**
 * What another technology left is removed as well as it goes. Rules that serve by themselves go when ours are in place;
 * those that lead to the sockets of a process that has ended go before. What connections go through waits for their end.
 */
async function removeLeftovers(
  config: ValidConfig,
  log: Log,
  concerns: (entry: [string, Mode]) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const { mode } = config;
  const keep = modes[mode].keepRules;
  for (const [name, other] of Object.entries(modes).filter(concerns)) {
    if (name === mode || other.keepDuring.includes(mode)) continue;
    try {
      const removed = await other.release({ keep });
      if (removed !== "draining") {
        if (!nothingRemoved(removed))
          log.info("Removed what another mode had put on this node", { mode: name, ...removed });
        continue;
      }
      log.v(2, "Connections through another mode go on", { mode: name });
      const again = () => void removeLeftovers(config, log, ([each]) => each === name, signal);
      signal.addEventListener("abort", systemClock.after(retreatEveryMs, again), { once: true });
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      log.v(2, "Leftovers of another mode could not be removed", { mode: name, reason: error.message });
    }
  }
}

function apiSpec({ config, master, version }: DaemonOptions): SourceSpec {
  const { kubeconfig, qps, burst } = config.clientConnection;
  return {
    kind: "api",
    connection: { kubeconfig, master },
    limit: { qps, burst },
    userAgent: userAgentOf(version),
  };
}
