// The daemon of kube-proxy and `turnout run`: starts its parts in order, and ends with the right exit code.

import type { Completed } from "../config/complete.ts";
import type { ValidConfig } from "../config/config.ts";
import type { ResolvedGates } from "../config/gates/gates.ts";
import type { TrafficSetting } from "../config/resolve/settings.ts";
import { HostError } from "../host/error.ts";
import type { Family } from "../model/address.ts";
import type { Driver } from "../modes/driver.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log, OpenLog } from "../observe/log/log.ts";
import { followSource } from "../observe/source-log.ts";
import { StatusSocket } from "../observe/status/socket.ts";
import type { StatusFacts } from "../observe/status/status.ts";
import { openSyncLog } from "../observe/sync-log.ts";
import type { Telemetry } from "../observe/telemetry.ts";
import { openSource, type SourceSpec, userAgentOf } from "../sources/index.ts";
import { type Source, SourceError } from "../sources/source.ts";
import { type RequestFacts, realWorld, type World } from "../sources/world.ts";
import { watchConfig } from "./config/config-changes.ts";
import type { WatchedFile } from "./config/config-file.ts";
import { collectAfterLoads } from "./heap.ts";
import { type HistorySettings, openHistory } from "./history.ts";
import { cleanUpAll, removeDeadRelays, removeOtherRules } from "./leftovers.ts";
import { watchLocalAddresses } from "./local-addresses.ts";
import { openLocalhost } from "./localhost.ts";
import { watchNode } from "./node-watch.ts";
import { openDaemonPage } from "./page.ts";
import { type Part, runParts } from "./part.ts";
import { signalOf } from "./signals.ts";
import { removeStaleFlows } from "./stale-flows.ts";
import { raiseOomScore } from "./start/kernel-settings.ts";
import { ownNodeName } from "./start/node-name.ts";
import { type OpenNode, startNode } from "./start/start.ts";
import { StartError } from "./start/start-error.ts";
import { recordStart } from "./start/start-events.ts";
import { logStart } from "./start/start-log.ts";
import { StartUpStatus } from "./start/startup-status.ts";
import { openStatusAnswers } from "./status-answers.ts";
import { openSyncLoop } from "./sync-loop.ts";
import { openDaemonTelemetry } from "./telemetry.ts";
import { openTraffic } from "./traffic.ts";

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
  /** nftables: no other program may change the table while the daemon runs. */
  readonly owned?: boolean;
  /** Path of the status socket; empty: none. */
  readonly statusSocket?: string;
  /** What is counted of Services; absent: nothing. */
  readonly traffic?: TrafficSetting;
  /** What is kept of the past; nothing when absent. */
  readonly history?: HistorySettings;
  /** Where the page is served; absent or empty: nowhere. */
  readonly pageAddress?: string;
  /** Deletes conntrack entries of TCP connections to removed endpoints, so that clients are reset. */
  readonly resetDeadTcp?: boolean;
};

/** Resolves with the exit code. */
export async function runDaemon(options: DaemonOptions, signal: AbortSignal): Promise<number> {
  const log = options.log.log.in("daemon/daemon.ts");
  signal.addEventListener("abort", () => logSignal(options.log, signal.reason), { once: true });
  try {
    return options.cleanup
      ? await cleanUpAll(log.in("daemon/leftovers.ts"))
      : await start(options, log, signal);
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

async function start(options: DaemonOptions, log: Log, signal: AbortSignal): Promise<number> {
  logStart(options, log);
  // The search for this Node makes requests before there are metrics to count them.
  let telemetry: Telemetry | null = null;
  const world = worldOf((facts) => telemetry?.requested(facts), log);
  const spec = options.source ?? apiSpec(options);
  const nodeName = await ownNodeName(options.config, spec, world, log.in("daemon/start/node-name.ts"));
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort(), { once: true });
  const startUp = new StartUpStatus(options, spec, nodeName, log.in("daemon/start/startup-status.ts"));
  const socketLog = log.in("observe/status/socket.ts");
  // A process that exits after its preparations answers nothing.
  const path = options.initOnly ? "" : (options.statusSocket ?? "");
  const socket = new StatusSocket(path, startUp.answering, socketLog);
  await socket.open();
  try {
    const source = await open(spec, nodeName, world, life.signal);
    startUp.opened(source);
    if (spec.kind === "api") followSource(source, systemClock, log.in("observe/source-log.ts"), life.signal);
    const cleared = removeDeadRelays(options.config, log.in("daemon/leftovers.ts"), life.signal);
    const startLog = log.in("daemon/start/start.ts");
    const started = await startNode(options, { spec, nodeName, source }, startUp, startLog, life.signal);
    if (options.initOnly) {
      log.info("Initialized; exiting because of --init-only");
      return 0;
    }
    await cleared;
    const drivers = await started.openDrivers();
    const node = { ...started, drivers, owned: isOwned(drivers, options, log) };
    const opened = openDaemonTelemetry(options, node, log.in("daemon/telemetry.ts"));
    telemetry = opened.telemetry;
    return await run(options, node, opened, { world, socket, facts: startUp.facts }, log, life.signal);
  } finally {
    socket.close();
    life.abort();
  }
}

type Surroundings = { readonly world: World; readonly socket: StatusSocket; readonly facts: StatusFacts };

/** Runs the parts until one of them ends the daemon. */
async function run(
  options: DaemonOptions,
  node: OpenNode,
  telemetryPart: Part & { readonly telemetry: Telemetry },
  { world, socket, facts }: Surroundings,
  log: Log,
  signal: AbortSignal,
): Promise<number> {
  const { config } = options;
  const { source, families, owned } = node;
  const { telemetry } = telemetryPart;
  const localhost = openLocalhost(node, telemetry.metrics, log.in("daemon/localhost.ts"));
  const traffic = openTraffic(options, node, telemetry.metrics, log.in("daemon/traffic.ts"));
  const settled = { ...facts, families, ownership: owned ? "owned" : "plain" } as const;
  const history = openHistory(options.history, node, log.in("daemon/history.ts"), signal);
  const answers = openStatusAnswers(settled, node, telemetry, { history, traffic: traffic.answer });
  await raiseOomScore(config.oomScoreAdj, log.in("daemon/start/kernel-settings.ts"));
  await recordStart(config, node, telemetry.events, world, log.in("daemon/start/start-events.ts"), signal);
  telemetry.countEvents(source);
  telemetry.serve();
  const records = {
    history: history.lines,
    traffic: { setting: options.traffic ?? "off", read: traffic.answer },
  };
  const page = openDaemonPage(options, node, answers, records, log.in("daemon/page.ts"));
  await socket.handTo({ ...answers.answering, page: page.views });
  const observers = [
    { synced: openSyncLog(log.in("observe/sync-log.ts")) },
    telemetry,
    answers.observer,
    page.observer,
    removeOtherRules(config, families, log.in("daemon/leftovers.ts"), signal),
    collectAfterLoads(systemClock),
    removeStaleFlows(options, node, telemetry, log.in("daemon/stale-flows.ts"), signal),
    localhost.observer,
    history.observer,
    traffic.observer,
  ];
  const loop = openSyncLoop(node, observers, log.in("daemon/sync-loop.ts"), signal);
  if (node.spec.kind === "api") telemetry.follow(source);
  const parts = [
    loop,
    telemetryPart,
    localhost,
    history,
    page,
    traffic,
    watchLocalAddresses(node, loop.wake),
    watchConfig(options, node, loop.wake, log.in("daemon/config/config-changes.ts")),
    watchNode({ ...node, config, onNode: telemetry.health.setNode }, log.in("daemon/node-watch.ts")),
  ];
  return runParts(parts, signal, (error) => log.error(error, "Cannot close a part of the daemon"));
}

function worldOf(onRequest: (facts: RequestFacts) => void, log: Log): World {
  const onWarning = onceEach((text) =>
    log.error(new Error(text), "Connection to the API server is not secure"),
  );
  return { ...realWorld(systemClock), onRequest, onWarning };
}

function open(spec: SourceSpec, nodeName: string, world: World, signal: AbortSignal): Promise<Source> {
  return openSource(spec, nodeName, world, signal).catch((error: unknown) => {
    if (!(error instanceof SourceError)) throw error;
    throw new StartError(`Cannot reach the cluster: ${error.message}`);
  });
}

/** Passes each text on only once. */
function onceEach(pass: (text: string) => void): (text: string) => void {
  const passed = new Set<string>();
  return (text) => {
    if (passed.has(text)) return;
    passed.add(text);
    pass(text);
  };
}

/** Whether the table is owned, which not every machine supports. */
function isOwned(drivers: ReadonlyMap<Family, Driver>, { owned = false }: DaemonOptions, log: Log): boolean {
  const inForce = [...drivers.values()].every((driver) => driver.report().tableOwned);
  if (owned && !inForce) {
    const why = new Error("only nftables mode can, on Linux 6.9 and later");
    log.error(why, "Cannot own the table; repairing foreign changes instead");
  }
  return inForce;
}

function apiSpec({ config, master, version }: DaemonOptions): SourceSpec {
  const { kubeconfig, qps, burst, contentType, acceptContentTypes } = config.clientConnection;
  return {
    kind: "api",
    connection: { kubeconfig, master },
    limit: { qps, burst },
    userAgent: userAgentOf(version),
    contentTypes: { contentType, acceptContentTypes },
  };
}
