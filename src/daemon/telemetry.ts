// Opens what tells the outside about this daemon: configuration and machine in the words of observe/.
import { hostname } from "node:os";
import { plainFile, unfold } from "../config/config.ts";
import { gates } from "../config/gates/table.ts";
import { milliseconds } from "../config/units/duration.ts";
import { release } from "../config/version.ts";
import { systemClock } from "../observe/clock.ts";
import { familyLabels } from "../observe/family.ts";
import { systemCounters } from "../observe/metrics/system-counters.ts";
import { systemProcess } from "../observe/metrics/system-process.ts";
import { healthCheckAddresses } from "../observe/servers/service-health.ts";
import { openTelemetry, type Telemetry } from "../observe/telemetry.ts";
import type { DaemonOptions } from "./daemon.ts";
import type { RunningParts } from "./running.ts";

export function telemetryOf(
  options: DaemonOptions,
  parts: RunningParts,
  onHardFail: (error: Error) => void,
): Telemetry {
  const { config, gates: resolved, flags, version, log, healthAnswers = "honest" } = options;
  const { nodeName, families, settings, drivers, mode } = parts;
  const facts = [...resolved.all].map(([name, on]) => ({ name, stage: stageText(name), on }));
  const telemetry = openTelemetry(
    {
      mode: config.mode,
      countsLocal: mode.countsLocal,
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
    },
    {
      clock: systemClock,
      random: Math.random,
      log: log.log,
      process: systemProcess,
      counters: systemCounters,
      onHardFail,
    },
  );
  telemetry.metrics.nftablesCleanupFailures.from(() =>
    [...drivers].flatMap(([family, driver]) => {
      const value = driver.report().cleanupFailures;
      return value === 0 ? [] : [{ labels: { ip_family: familyLabels[family] }, value }];
    }),
  );
  for (const family of families) {
    const owned = options.owned === true ? 1 : 0;
    telemetry.metrics.tableOwned.with({ ip_family: familyLabels[family] }).set(owned);
  }
  return telemetry;
}

function stageText(name: string): string {
  const stage = gates.get(name)?.stage ?? "";
  return stage === "ga" ? "" : stage.toUpperCase();
}
