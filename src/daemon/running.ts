// The daemon at work: source, loop, servers and events side by side, until one of them says it is over.

import type { ValidConfig } from "../config/config.ts";
import { writeConfig } from "../config/file/write.ts";
import { milliseconds } from "../config/units/duration.ts";
import { parseFrom, parseTo } from "../explain/question.ts";
import { viewFor, viewsOf } from "../explain/view.ts";
import { followLocalAddresses, type readLocalAddresses } from "../host/local-addresses.ts";
import { cleanFlows } from "../host/netlink/conntrack.ts";
import type { Family } from "../model/address.ts";
import { quoted } from "../model/problem.ts";
import type { ClusterNode, Snapshot } from "../model/snapshot.ts";
import type { Driver } from "../modes/driver.ts";
import { type Mode, resyncPeriodMs } from "../modes/mode.ts";
import { LocalhostNodePorts, type LocalhostReport } from "../modes/nftables/host/localhost.ts";
import { systemClock } from "../observe/clock.ts";
import { sendWith } from "../observe/events/api.ts";
import { familyLabels } from "../observe/family.ts";
import type { Log } from "../observe/log/log.ts";
import type { StatusSocket } from "../observe/status/socket.ts";
import { type Answers, keepStatus, type StatusFacts, type StatusKeeper } from "../observe/status/status.ts";
import { openSyncLog } from "../observe/sync-log.ts";
import type { Telemetry } from "../observe/telemetry.ts";
import { openApi, type SourceSpec } from "../sources/index.ts";
import type { Source } from "../sources/source.ts";
import type { RequestFacts, World } from "../sources/world.ts";
import { type FinishedSync, type FlowSweep, FlowSweeper, type FlowSweepOptions } from "../sync/flows.ts";
import { openLoop } from "../sync/loop.ts";
import type { SyncRecord } from "../sync/record.ts";
import { reasonNotToRestart } from "./config-restart.ts";
import { followConfig, type Restart, readText } from "./config-watch.ts";
import type { DaemonOptions } from "./daemon.ts";
import { collectAfterLargeSyncs } from "./heap.ts";
import type { NodeSettings } from "./node-settings.ts";
import { raiseOomScore, reportWarnings, warningsOf } from "./start.ts";
import { waitFor } from "./startup-status.ts";
import { telemetryOf } from "./telemetry.ts";

export type RunningParts = {
  readonly world: World;
  readonly nodeName: string;
  readonly node: ClusterNode | null;
  readonly source: Source;
  /** Answers already, as start-up does. */
  readonly status: StatusSocket;
  readonly startUp: { readonly facts: StatusFacts };
  readonly settings: NodeSettings;
  readonly families: readonly Family[];
  readonly drivers: ReadonlyMap<Family, Driver>;
  readonly mode: Mode;
  /** Makes the machine ready for the mode with the settings of now. */
  readonly prepare: () => Promise<void>;
  /** Removes what other modes left, once our own rules are in place. */
  readonly removeLeftovers: () => Promise<void>;
  readonly localAddresses: Awaited<ReturnType<typeof readLocalAddresses>>;
};

/** Everything that works side by side until one of them says it is over. */
/** How many ServicePorts are told of between two turns of the event loop: a millisecond's work. */
const mostPortsAtOnce = 200;

export class Running {
  readonly #options: DaemonOptions;
  readonly #spec: SourceSpec;
  readonly #parts: RunningParts;
  readonly #log: Log;
  readonly #telemetry: Telemetry;
  readonly #localhost: ReadonlyMap<Family, LocalhostNodePorts>;
  readonly #awaited: Set<Family>;
  readonly #status: StatusKeeper;
  /** Families whose last removal of stale conntrack entries failed. */
  readonly #staleFlows = new Set<Family>();
  /** null: the Source has not told anything yet. */
  #known: Snapshot | null = null;
  #end: (code: number) => void = () => {};
  readonly #ended: Promise<number>;

  constructor(options: DaemonOptions, spec: SourceSpec, parts: RunningParts, log: Log) {
    this.#options = options;
    this.#spec = spec;
    this.#parts = parts;
    this.#log = log;
    this.#awaited = new Set(parts.families);
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#telemetry = telemetryOf(options, parts, (error) => this.#fail(error.message));
    this.#localhost = this.#openLocalhost();
    const firstLists = waitFor("the cluster's first complete lists");
    const ownership = options.owned === true ? "owned" : "plain";
    this.#status = keepStatus(
      { ...parts.startUp.facts, families: parts.families, ownership },
      {
        source: () => parts.source.status(),
        configuration: () => writeConfig(parts.settings.config),
        problems: () => this.#telemetry.problems(),
        intercepts: () => this.#telemetry.intercepts(),
        waits: () => (this.#known === null ? firstLists : null),
        now: () => systemClock.wall(),
      },
    );
  }

  /** Told of every request to the API server. */
  requested(facts: RequestFacts): void {
    this.#telemetry.requested(facts);
  }

  async untilEnd(signal: AbortSignal): Promise<number> {
    const { config } = this.#options;
    const { source, drivers, settings, localAddresses, mode, nodeName } = this.#parts;
    signal.addEventListener("abort", () => this.#end(0), { once: true });
    await raiseOomScore(config.oomScoreAdj, this.#log);
    if (mode.deprecation !== null) this.#log.error(new Error(mode.deprecation.text), mode.deprecation.reason);
    if (this.#spec.kind === "api") await this.#connectEvents(this.#spec, signal);
    this.#telemetry.countEvents(source);
    this.#telemetry.serve();
    await this.#parts.status.handTo({
      "/": this.#status.status,
      "/relays": () => this.#relays(),
      "/view": (query) => this.#view(query.get("from") ?? "", query.get("to") ?? ""),
      "/cluster": () => (this.#known === null ? [null] : viewsOf(this.#known, mostPortsAtOnce)),
    });
    const tidy = collectAfterLargeSyncs(systemClock);
    const logSync = openSyncLog(this.#log.in("observe/sync-log.ts"));
    const loop = openLoop({
      snapshots: source.snapshots(signal),
      drivers,
      settings: (family, snapshot) => settings.of(family, snapshot),
      pace: () => ({
        minGapMs: milliseconds(settings.config.minSyncPeriod),
        retryMs: milliseconds(settings.config.syncPeriod),
        resyncMs: resyncPeriodMs(mode, settings.config),
      }),
      clock: systemClock,
      observers: [
        {
          arrived: (snapshot) => {
            this.#known = snapshot;
          },
        },
        { synced: logSync },
        this.#telemetry,
        this.#status,
        { synced: (record) => this.#afterSync(record) },
        { synced: tidy },
        { afterSync: this.#afterEverySync(signal) },
      ],
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
    this.#followFile(() => loop.wake(), signal);
    void this.#followNode(signal);
    if (this.#spec.kind === "api") this.#telemetry.follow(source);
    this.#telemetry.events.record("Starting", { kind: "Node", name: nodeName }, "");
    this.#log
      .in("daemon/running.ts")
      .info("Waiting for the first lists of Services, EndpointSlices and ServiceCIDRs");
    const looping = loop.run(signal);
    try {
      return await Promise.race([this.#ended, looping.then(() => this.#ended)]);
    } finally {
      for (const listeners of this.#localhost.values()) await listeners.close();
      await this.#telemetry.close();
      for (const driver of drivers.values()) await driver.close();
    }
  }

  #relays(): Answers["/relays"] {
    const found = [...this.#parts.drivers].map(([family, driver]) => [family, driver.report().relays?.()]);
    return Object.fromEntries(found);
  }

  #view(fromText: string, toText: string): Answers["/view"] {
    const [from, to] = [parseFrom(fromText), parseTo(toText)];
    if (this.#known === null || !from.ok || !to.ok || from.value.kind === "named") return null;
    const { settings } = this.#parts.settings.resolved;
    return viewFor(this.#known, [settings.ipv4.nodeIP, settings.ipv6.nodeIP], from.value, to.value);
  }

  #followFile(wake: () => void, signal: AbortSignal): void {
    const { configFile, complete, configChanges, log: opened } = this.#options;
    const { settings, node, families, prepare } = this.#parts;
    if (configFile === null) return;
    if (configChanges === undefined || configChanges === "restart") {
      configFile.changed().then(
        (reason) => this.#fail(`${reason}: ending, to be started again with the new configuration`),
        (error: unknown) => this.#fail(`Cannot watch the configuration file: ${String(error)}`),
      );
      return;
    }
    const log = this.#log.in("daemon/config-watch.ts");
    const doubts = () => warningsOf(settings, node, families.length === 2);
    const apply = async (next: ValidConfig) => {
      const [before, known] = [settings.config, new Set(doubts().map(({ message }) => message))];
      settings.setConfig(next);
      try {
        reportWarnings(
          doubts().filter(({ message, fatal }) => fatal || !known.has(message)),
          log,
        );
        await prepare();
      } catch (error) {
        settings.setConfig(before);
        throw error;
      }
      opened.setVerbosity(next.logging.verbosity);
      wake();
    };
    const running = () => settings.config;
    const restart: Restart | null =
      configChanges === "apply-live-only"
        ? null
        : { refusal: (next) => reasonNotToRestart(next, this.#parts), exit: () => this.#end(1) };
    const world = { clock: systemClock, log, read: readText, complete, running, apply, restart };
    followConfig(configFile.path, configFile.text, world, signal);
  }

  #fail(reason: string): void {
    this.#log.error(new Error(reason), "command failed");
    this.#end(1);
  }

  async #connectEvents(spec: Extract<SourceSpec, { kind: "api" }>, signal: AbortSignal): Promise<void> {
    this.#telemetry.events.connect(sendWith(await openApi(spec, this.#parts.world), signal));
    const { config } = this.#options;
    const node = { kind: "Node", name: this.#parts.nodeName } as const;
    if (config.modeDefaulted) {
      const note =
        "mode was not set: iptables is used today, nftables will be the default from Kubernetes 1.40 on";
      this.#log.error(new Error(note), "Set mode explicitly");
      this.#telemetry.events.record("KubeProxyDefaultMode", node, note);
    }
    const { deprecation: notice } = this.#parts.mode;
    if (notice !== null) this.#telemetry.events.record(notice.reason, node, notice.text);
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
        this.#telemetry.health.setNode(event.node);
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

  #afterEverySync(signal: AbortSignal): (sync: FinishedSync) => void {
    const clean: FlowSweepOptions["clean"] = (query, stop) => cleanFlows(query, {}, stop);
    const swept = (sweep: FlowSweep) => this.#logSweep(sweep);
    const sweeper = new FlowSweeper({ clean, clock: systemClock, swept }, signal);
    return (sync) => {
      if (this.#parts.mode.conntrack === "shared") sweeper.afterSync(sync);
      if (sync.record.outcome.kind === "ok")
        void this.#localhost.get(sync.record.family)?.update(sync.routes());
    };
  }

  #openLocalhost(): ReadonlyMap<Family, LocalhostNodePorts> {
    const { families, settings } = this.#parts;
    if (!this.#parts.mode.servesLoopback) return new Map();
    const { metrics } = this.#telemetry;
    const label = (family: Family) => ({ ip_family: familyLabels[family] });
    const report: LocalhostReport = {
      listeners: (family, count) => metrics.localhostListeners.with(label(family)).set(count),
      outcome: (family, outcome) =>
        metrics.localhostAcceptedConnections.with({ ...label(family), outcome }).add(),
      failed: (family, error) => {
        metrics.localhostListenFailures.with(label(family)).add();
        this.#log
          .in("modes/nftables/host/localhost.ts")
          .error(error, "NodePort on loopback is not served; trying again with the next Sync");
      },
    };
    // Where loopback is not named, they wait: nodePortAddresses may come to name it.
    const gated = families.filter((family) => settings.resolved.settings[family].nftLocalhost !== "pass");
    return new Map(
      gated.map((family) => [family, new LocalhostNodePorts(family, systemClock, Math.random, report)]),
    );
  }

  /** Until our rules are in place those of another mode serve on: nobody waits in between. */
  #afterSync({ family, outcome }: SyncRecord): void {
    if (outcome.kind !== "ok" || this.#awaited.size === 0) return;
    this.#awaited.delete(family);
    if (this.#awaited.size === 0) void this.#parts.removeLeftovers();
  }

  #logSweep(sweep: FlowSweep): void {
    const { family, milliseconds: ms, outcome } = sweep;
    this.#telemetry.swept(sweep);
    const log = this.#log.in("sync/flows.ts");
    if (outcome.kind === "failed") {
      this.#staleFlows.add(family);
      log.error(new Error(outcome.message), "Cannot remove stale conntrack entries; retrying", { family });
    } else {
      if (this.#staleFlows.delete(family))
        log.info("Removed stale conntrack entries after failures", { family });
      log.v(2, "Searched for stale conntrack entries", { family, ms: Math.round(ms), ...outcome });
    }
  }
}
