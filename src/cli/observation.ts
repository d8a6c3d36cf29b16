// Opens what tells the outside about this daemon: configuration and machine in the words of observe/.
import { readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { plainFile, unfold } from "../config/config.ts";
import { gates } from "../config/gate-table.ts";
import { milliseconds } from "../config/units/duration.ts";
import { release } from "../config/version.ts";
import { systemClock } from "../observe/clock.ts";
import { type Observation, openObservation } from "../observe/observation.ts";
import { readPacketCounter } from "../sync/iptables-support.ts";
import type { DaemonOptions } from "./daemon.ts";
import type { RunningParts } from "./running.ts";

export function observationOf(
  options: DaemonOptions,
  parts: RunningParts,
  onHardFail: (error: Error) => void,
): Observation {
  const { config, gates: resolved, flags, version, log, healthAnswers = "honest" } = options;
  const { nodeName, families, settings, localAddresses } = parts;
  const facts = [...resolved.all].map(([name, on]) => ({ name, stage: stageText(name), on }));
  const observation = openObservation(
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
      onHardFail,
    },
  );
  if (config.mode === "iptables") tellPackets(observation);
  return observation;
}

function tellPackets({ metrics }: Observation): void {
  const readings = (counter: Parameters<typeof readPacketCounter>[0]) => async () => {
    const value = await readPacketCounter(counter);
    return value === null ? [] : [{ labels: {}, value }];
  };
  metrics.invalidDropped.from(readings("invalidDropped"));
  metrics.localhostAccepted.from(readings("localhostNodePorts"));
}

function stageText(name: string): string {
  const stage = gates.get(name)?.stage ?? "";
  return stage === "ga" ? "" : stage.toUpperCase();
}
