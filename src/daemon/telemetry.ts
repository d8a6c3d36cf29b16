// Opens the telemetry of this daemon: metrics, health, Events and their servers, for its configuration and machine.
import { hostname } from "node:os";
import { plainFile, unfold } from "../config/config.ts";
import { gates } from "../config/gates/table.ts";
import { milliseconds } from "../config/units/duration.ts";
import { release } from "../config/version.ts";
import { systemClock } from "../observe/clock.ts";
import { familyLabels } from "../observe/family.ts";
import type { Log } from "../observe/log/log.ts";
import type { Metrics } from "../observe/metrics/metrics.ts";
import { systemCounters } from "../observe/metrics/system-counters.ts";
import { systemProcess } from "../observe/metrics/system-process.ts";
import { healthCheckAddresses } from "../observe/servers/service-health.ts";
import { openTelemetry, type Telemetry, type TelemetrySettings } from "../observe/telemetry.ts";
import type { DaemonOptions } from "./daemon.ts";
import type { Part } from "./part.ts";
import type { OpenNode, StartedNode } from "./start/start.ts";

/** Ends the daemon with `bindAddressHardFail` when a port cannot be served. */
export function openDaemonTelemetry(
  options: DaemonOptions,
  node: OpenNode,
  log: Log,
): Part & { readonly telemetry: Telemetry } {
  let exit: (code: number) => void = () => {};
  const exited = new Promise<number>((resolve) => {
    exit = resolve;
  });
  const telemetry = openTelemetry(settingsOf(options, node), {
    clock: systemClock,
    random: Math.random,
    log: options.log.log,
    process: systemProcess,
    counters: systemCounters,
    onHardFail(error) {
      log.error(new Error(error.message), "command failed");
      exit(1);
    },
  });
  reportDrivers(telemetry.metrics, node);
  return { telemetry, run: () => exited, close: telemetry.close };
}

export function reportDrivers(
  metrics: Metrics,
  { families, drivers, owned }: Pick<OpenNode, "families" | "drivers" | "owned">,
): void {
  metrics.nftablesCleanupFailures.from(() =>
    [...drivers].flatMap(([family, driver]) => {
      const value = driver.report().cleanupFailures;
      return value === 0 ? [] : [{ labels: { ip_family: familyLabels[family] }, value }];
    }),
  );
  for (const family of families)
    metrics.tableOwned.with({ ip_family: familyLabels[family] }).set(owned ? 1 : 0);
}

function settingsOf(
  { config, gates: resolved, flags, version, log, healthAnswers = "honest" }: DaemonOptions,
  { nodeName, families, settings, mode }: StartedNode,
): TelemetrySettings {
  const facts = [...resolved.all].map(([name, on]) => ({ name, stage: stageText(name), on }));
  return {
    mode: config.mode,
    countsLocal: mode.behavior.countsLocal,
    nodeName,
    hostname: hostname(),
    families: families.map((family) => ({
      family,
      addresses: () => {
        const { nodePortAddresses, localAddresses } = settings.resolved.settings[family];
        return healthCheckAddresses(family, nodePortAddresses, localAddresses);
      },
    })),
    syncPeriodMs: () => milliseconds(settings.config.syncPeriod),
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
      config: () => plainFile(unfold(settings.config)),
      flags: () => flags,
      setVerbosity: config.enableProfiling ? log.setVerbosity : null,
    },
  };
}

function stageText(name: string): string {
  const stage = gates.get(name)?.stage ?? "";
  return stage === "ga" ? "" : stage.toUpperCase();
}
