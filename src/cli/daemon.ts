// The daemon behind kube-proxy and `turnout run`: starts everything in order, and ends it with the right exit code.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, hostname } from "node:os";
import { plainFile, unfold, type ValidConfig } from "../config/config.ts";
import { conntrackTargets, countCpus } from "../config/conntrack.ts";
import { gates } from "../config/gate-table.ts";
import type { ResolvedGates } from "../config/gates.ts";
import { nodeNameOf } from "../config/resolve.ts";
import { doubtFamilies, doubtNodePorts } from "../config/sanity.ts";
import { milliseconds } from "../config/units/duration.ts";
import { release } from "../config/version.ts";
import { HostError } from "../host/error.ts";
import { applySysctls, type SettingFiles, setOomScore } from "../host/sysctl.ts";
import type { Family } from "../model/address.ts";
import { quoted } from "../model/problem.ts";
import type { ClusterNode } from "../model/snapshot.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log, OpenLog } from "../observe/log/log.ts";
import { type Observation, openObservation } from "../observe/observation.ts";
import { openApi, openSource, type SourceSpec, userAgentOf } from "../sources/index.ts";
import type { Source } from "../sources/source.ts";
import { waitForNode } from "../sources/wait-for-node.ts";
import { realWorld } from "../sources/world.ts";
import type { Driver } from "../sync/driver.ts";
import { openLoop } from "../sync/loop.ts";
import { type ModeAtWork, modesAtWork } from "../sync/modes.ts";
import type { SyncRecord } from "../sync/record.ts";
import type { WatchedFile } from "./config-file.ts";
import { followLocalAddresses, NodeSettings, readLocalAddresses } from "./node-settings.ts";

export type DaemonOptions = {
  readonly config: ValidConfig;
  readonly gates: ResolvedGates;
  /** `--master`: URL of the API server; empty for none. */
  readonly master: string;
  readonly cleanup: boolean;
  readonly initOnly: boolean;
  /** null without `--config`. When it changes, the process ends with exit code 1. */
  readonly configFile: WatchedFile | null;
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
};

/** Resolves with the exit code. */
export async function runDaemon(options: DaemonOptions, signal: AbortSignal): Promise<number> {
  const log = options.log.log.in("cli/daemon.ts");
  try {
    return options.cleanup ? await cleanUp(log) : await start(options, log, signal);
  } catch (error) {
    if (signal.aborted) return 0;
    if (!(error instanceof HostError) && !(error instanceof StartError)) throw error;
    log.error(error, "command failed");
    return 1;
  }
}

/** Something the machine or the cluster lacks that we cannot start without. */
class StartError extends Error {}

/** `--cleanup`: every mode, whatever the others say. */
async function cleanUp(log: Log): Promise<number> {
  let code = 0;
  for (const [name, mode] of Object.entries(modesAtWork)) {
    try {
      await mode.cleanUp({});
      log.v(1, "Removed what the mode had put on this node", { mode: name });
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
  const mode = modesAtWork[config.mode];
  if (mode === undefined)
    throw new StartError(`Cannot start: mode ${quoted(config.mode)} is not available in this build`);
  await removeLeftovers(config, log);

  const nodeName = nodeNameOf(config, hostname());
  if (nodeName === "") throw new StartError("Cannot start: this node has no name; set hostnameOverride");
  const world = realWorld(systemClock);
  const spec = options.source ?? apiSpec(options);
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort(), { once: true });
  const source = await openSource(spec, nodeName, world, life.signal).catch((error: unknown) => {
    throw new StartError(
      `Cannot reach the cluster: ${error instanceof Error ? error.message : String(error)}`,
    );
  });
  try {
    const node = await findNode(source, options, nodeName, log, life.signal);
    const localAddresses = await readLocalAddresses({});
    const settings = new NodeSettings(config, {
      nodeName,
      nodeIPs: node?.addresses ?? [],
      podCIDRs: node?.podCIDRs ?? [],
      zone: node?.zone ?? "",
      localAddresses,
      tcpBeLiberal: readSysctl("/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal") === "1",
    });
    tuneConntrack(config, log);
    const families = await servedFamilies(mode, options, settings, node, log);
    const modeOptions = {
      config,
      settings: settings.resolved.settings,
      clock: systemClock,
      owned: options.owned ?? false,
    };
    await mode.prepare(modeOptions);
    if (options.initOnly) {
      log.info("Initialised, as --init-only asks; ending");
      return 0;
    }
    const drivers = new Map<Family, Driver>();
    for (const family of families) drivers.set(family, await mode.open(family, modeOptions));
    const running = new Running(
      options,
      spec,
      { nodeName, node, source, settings, families, drivers, mode, localAddresses },
      log,
    );
    return await running.untilEnd(life.signal);
  } finally {
    life.abort();
  }
}

/** At a start, what the other technology left is removed as well as it goes. */
async function removeLeftovers({ mode }: ValidConfig, log: Log): Promise<void> {
  for (const [name, other] of Object.entries(modesAtWork)) {
    const sharesIptables =
      (name === "iptables" || name === "ipvs") && (mode === "iptables" || mode === "ipvs");
    if (name === mode || sharesIptables) continue;
    await other.cleanUp({}).catch((error: unknown) => {
      if (!(error instanceof HostError)) throw error;
      log.v(2, "Leftovers of another mode could not be removed", { mode: name, reason: error.message });
    });
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

async function findNode(
  source: Source,
  { config }: DaemonOptions,
  nodeName: string,
  log: Log,
  signal: AbortSignal,
): Promise<ClusterNode | null> {
  const needs = { podCIDRs: config.detectLocalMode === "NodeCIDR" };
  const { node, missing } = await waitForNode(source, needs, systemClock, signal);
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
  return node;
}

const files: SettingFiles = {
  read: (file) => readFileSync(file, "utf8"),
  write: (file, text) => writeFileSync(file, text),
};

function readSysctl(file: string): string {
  try {
    return files.read(file).trim();
  } catch {
    return "";
  }
}

function tuneConntrack(config: ValidConfig, log: Log): void {
  const cpus = countCpus(readSysctl("/sys/devices/system/cpu/online")) ?? availableParallelism();
  for (const { file, value } of applySysctls(conntrackTargets(config.conntrack, cpus), files)) {
    log.info("Set a kernel setting", { file, value });
  }
}

async function servedFamilies(
  mode: ModeAtWork,
  { config }: DaemonOptions,
  settings: NodeSettings,
  node: ClusterNode | null,
  log: Log,
): Promise<readonly Family[]> {
  const { primary } = settings.resolved.nodeIPs;
  const podCIDRs = node?.podCIDRs ?? [];
  const nodePortDoubt = doubtNodePorts(config, podCIDRs, settings.resolved);
  if (nodePortDoubt !== null) log.error(new Error(nodePortDoubt), "Configuration may let in more than meant");
  const supported = await mode.families();
  if (!supported.includes(primary)) {
    throw new StartError(
      `Cannot start: this machine does not support ${primary}, the primary family of this node`,
    );
  }
  const isDualStack = supported.length === 2;
  for (const { message, fatal } of doubtFamilies(config, podCIDRs, primary, isDualStack)) {
    if (fatal) throw new StartError(`Cannot start: ${message}`);
    log.error(new Error(message), "Configuration does not fit this node");
  }
  log.info(isDualStack ? "Dual-stack" : "Single-stack", { primary });
  return isDualStack ? ["ipv4", "ipv6"] : [primary];
}

type Parts = {
  readonly nodeName: string;
  readonly node: ClusterNode | null;
  readonly source: Source;
  readonly settings: NodeSettings;
  readonly families: readonly Family[];
  readonly drivers: ReadonlyMap<Family, Driver>;
  readonly mode: ModeAtWork;
  readonly localAddresses: Awaited<ReturnType<typeof readLocalAddresses>>;
};

/** Everything that works side by side until one of them says it is over. */
class Running {
  readonly #options: DaemonOptions;
  readonly #spec: SourceSpec;
  readonly #parts: Parts;
  readonly #log: Log;
  readonly #observation: Observation;
  #end: (code: number) => void = () => {};
  readonly #ended: Promise<number>;

  constructor(options: DaemonOptions, spec: SourceSpec, parts: Parts, log: Log) {
    this.#options = options;
    this.#spec = spec;
    this.#parts = parts;
    this.#log = log;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#observation = this.#openObservation();
  }

  async untilEnd(signal: AbortSignal): Promise<number> {
    const { config, configFile } = this.#options;
    const { source, drivers, settings, localAddresses, mode, nodeName } = this.#parts;
    signal.addEventListener("abort", () => this.#end(0), { once: true });
    configFile?.changed().then(
      (reason) => this.#fail(`${reason}: ending, to be started again with the new configuration`),
      (error: unknown) => this.#fail(`Cannot watch the configuration file: ${String(error)}`),
    );
    await this.#raiseOomScore();
    if (this.#spec.kind === "api") await this.#connectEvents(this.#spec, signal);
    this.#observation.serve();
    const loop = openLoop({
      snapshots: source.snapshots(signal),
      drivers,
      settings: (family, snapshot) => settings.of(family, snapshot),
      pace: {
        minGapMs: milliseconds(config.minSyncPeriod),
        retryMs: milliseconds(config.syncPeriod),
        resyncMs: mode.resyncMs(config),
      },
      clock: systemClock,
      observer: {
        ...this.#observation,
        synced: (record, snapshot) => {
          this.#tell(record);
          this.#observation.synced(record, snapshot);
        },
      },
    });
    await followLocalAddresses(
      {},
      localAddresses,
      (addresses) => {
        settings.setLocalAddresses(addresses);
        loop.wake();
      },
      signal,
    );
    void this.#followNode(signal);
    if (this.#spec.kind === "api") this.#observation.follow(source);
    this.#observation.events.record("Starting", { kind: "Node", name: nodeName }, "");
    const looping = loop.run(signal);
    try {
      return await Promise.race([this.#ended, looping.then(() => this.#ended)]);
    } finally {
      await this.#observation.close();
      for (const driver of drivers.values()) await driver.close();
    }
  }

  #fail(reason: string): void {
    this.#log.error(new Error(reason), "command failed");
    this.#end(1);
  }

  #openObservation(): Observation {
    const { config, gates: resolved, flags, version, log, healthAnswers = "honest" } = this.#options;
    const { nodeName, families, settings, localAddresses } = this.#parts;
    const facts = [...resolved.all].map(([name, on]) => ({ name, stage: stageText(name), on }));
    return openObservation(
      {
        mode: config.mode,
        nodeName,
        hostname: hostname(),
        families: families.map((family) => ({
          family,
          nodePorts: settings.resolved.settings[family].nodePortAddresses,
          local: localAddresses[family],
        })),
        syncPeriodMs: milliseconds(config.syncPeriod),
        answers: healthAnswers,
        healthzAddress: config.healthzBindAddress,
        metricsAddress: config.metricsBindAddress,
        hardFail: config.bindAddressHardFail,
        showHidden: config.showHiddenMetricsForVersion !== "",
        gates: facts,
        build: {
          major: String(release.major),
          minor: String(release.minor),
          gitVersion: version,
          platform: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
          turnoutVersion: version.slice(version.indexOf("turnout.") + "turnout.".length),
          nodeVersion: process.version,
        },
        pages: {
          config: () => plainFile(unfold(config)),
          flags: () => flags,
          setVerbosity: config.enableProfiling ? log.setVerbosity : null,
        },
      },
      {
        clock: systemClock,
        random: Math.random,
        log: log.log,
        process: {
          readText: (path) => readFileSync(path, "utf8"),
          countEntries: (directory) => readdirSync(directory).length,
          cpuSeconds: () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6,
          residentBytes: () => process.memoryUsage.rss(),
          heapUsedBytes: () => process.memoryUsage().heapUsed,
        },
        onHardFail: (error) => this.#fail(error.message),
      },
    );
  }

  async #raiseOomScore(): Promise<void> {
    const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
    const refused = await setOomScore(this.#options.config.oomScoreAdj, files, pause);
    if (refused !== null) this.#log.v(2, "Cannot set the OOM score", { reason: refused.message });
  }

  async #connectEvents(spec: Extract<SourceSpec, { kind: "api" }>, signal: AbortSignal): Promise<void> {
    const client = await openApi(spec, realWorld(systemClock));
    this.#observation.events.connect(async ({ method, path, contentType, body }) => {
      try {
        await client.json({ method, path, body: { contentType, text: body } }, signal);
        return 201;
      } catch (error) {
        if (error instanceof Error && "status" in error && typeof error.status === "number")
          return error.status;
        throw error;
      }
    });
    const { config } = this.#options;
    const node = { kind: "Node", name: this.#parts.nodeName } as const;
    if (config.modeDefaulted) {
      const note =
        "mode was not set: iptables is used today, nftables will be the default from Kubernetes 1.40 on";
      this.#log.error(new Error(note), "Set mode explicitly");
      this.#observation.events.record("KubeProxyDefaultMode", node, note);
    }
    if (config.mode === "ipvs") {
      const note = "mode ipvs is deprecated: off by default from Kubernetes 1.40 on, removed in 1.43";
      this.#log.error(new Error(note), "Move to nftables");
      this.#observation.events.record("IPVSDeprecation", node, note);
    }
  }

  /** Another address, other pod networks, or no Node any more: settings made at the start are wrong. */
  async #followNode(signal: AbortSignal): Promise<void> {
    const { source, node, nodeName } = this.#parts;
    const { detectLocalMode } = this.#options.config;
    const known = { addresses: node?.addresses ?? [], podCIDRs: node?.podCIDRs ?? [] };
    try {
      for await (const event of source.nodeEvents(signal)) {
        if (event.kind === "deleted") return this.#fail(`Node ${quoted(nodeName)} was deleted`);
        if (event.kind === "absent") continue;
        if (event.node.addresses.join() !== known.addresses.join()) {
          return this.#fail(
            `Node IPs changed from [${known.addresses.join(" ")}] to [${event.node.addresses.join(" ")}]`,
          );
        }
        if (detectLocalMode === "NodeCIDR" && event.node.podCIDRs.join() !== known.podCIDRs.join()) {
          return this.#fail(
            `podCIDRs changed from [${known.podCIDRs.join(" ")}] to [${event.node.podCIDRs.join(" ")}]`,
          );
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #tell(record: SyncRecord): void {
    const log = this.#log.in("sync/loop.ts");
    const { family, trigger, operations, bytes, changedPorts, servicePorts, endpoints, outcome } = record;
    const ms = record.finishedAt - record.startedAt;
    if (outcome.kind === "failed")
      log.error(new Error(outcome.message), "Sync failed", { family, trigger, ms });
    else {
      for (const problem of outcome.refused)
        log.error(new Error(problem.message), "Refused by the kernel", { object: problem.object });
      log.v(2, "Synced", { family, trigger, ms, servicePorts, endpoints, changedPorts, operations, bytes });
    }
  }
}

function stageText(name: string): string {
  const stage = gates.get(name)?.stage ?? "";
  return stage === "ga" ? "" : stage.toUpperCase();
}
