// The part of the daemon that runs the sync loop and owns its drivers.

import type { ValidConfig } from "../config/config.ts";
import { milliseconds } from "../config/units/duration.ts";
import { resyncPeriodMs } from "../modes/mode.ts";
import { systemClock } from "../observe/clock.ts";
import { familyLabels } from "../observe/family.ts";
import type { Log } from "../observe/log/log.ts";
import { type LoopObserver, openLoop } from "../sync/loop.ts";
import type { Gap } from "../sync/pace.ts";
import { openCpuMeter } from "./cpu-meter.ts";
import type { Part } from "./part.ts";
import type { OpenNode } from "./start/start.ts";

type SyncLoop = Part & { readonly wake: () => void };

export function openSyncLoop(
  { source, settings, mode, drivers }: Pick<OpenNode, "source" | "settings" | "mode" | "drivers">,
  observers: readonly Partial<LoopObserver>[],
  log: Log,
  signal: AbortSignal,
): SyncLoop {
  const loop = openLoop({
    snapshots: source.snapshots(signal),
    drivers,
    settings: (family, snapshot) => settings.of(family, snapshot),
    pace: () => ({
      gap: gapOf(settings.config),
      retryMs: milliseconds(settings.config.syncPeriod),
      resyncMs: resyncPeriodMs(mode, settings.config),
    }),
    clock: systemClock,
    cpuMs: openCpuMeter(),
    observers,
  });
  return {
    wake: () => loop.wake(),
    async run(stop) {
      log.info("Waiting for the first lists of Services, EndpointSlices and ServiceCIDRs");
      await loop.run(stop);
      return null;
    },
    async close() {
      const closed = [...drivers].map(([family, driver]) =>
        driver
          .close()
          .catch((error: unknown) =>
            log.error(error, "Cannot close the driver", { family: familyLabels[family] }),
          ),
      );
      await Promise.all(closed);
    },
  };
}

function gapOf({ pace }: ValidConfig): Gap {
  return pace.kind === "cost" ? pace : { kind: "period", ms: milliseconds(pace.period) };
}
