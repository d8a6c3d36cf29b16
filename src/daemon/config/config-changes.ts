// What the daemon does when its configuration file changes: exits, or applies the change in place.
import type { ValidConfig } from "../../config/config.ts";
import { systemClock } from "../../observe/clock.ts";
import type { Log } from "../../observe/log/log.ts";
import type { DaemonOptions } from "../daemon.ts";
import type { Part } from "../part.ts";
import type { StartedNode } from "../start/start.ts";
import type { WatchedFile } from "./config-file.ts";
import { reasonNotToRestart } from "./config-restart.ts";
import { reportWarnings, warningsOf } from "./config-warnings.ts";
import { followConfig, type Restart, readText } from "./config-watch.ts";

export function watchConfig(options: DaemonOptions, node: StartedNode, wake: () => void, log: Log): Part {
  const { configFile, configChanges = "restart" } = options;
  if (configFile === null) return { run: async () => null };
  if (configChanges === "restart") return { run: () => exitOnChange(configFile, log) };
  const watchLog = log.in("daemon/config/config-watch.ts");
  return {
    run: (signal) =>
      new Promise((resolve) => {
        const restart: Restart | null =
          configChanges === "apply-live-only"
            ? null
            : { refusal: (next) => reasonNotToRestart(next, node), exit: () => resolve(1) };
        const world = {
          clock: systemClock,
          log: watchLog,
          read: readText,
          complete: options.complete,
          running: () => node.settings.config,
          apply: (next: ValidConfig) => applyInPlace(next, options, node, wake, watchLog),
          restart,
        };
        followConfig(configFile.path, configFile.text, world, signal);
      }),
  };
}

async function exitOnChange(file: WatchedFile, log: Log): Promise<number> {
  const reason = await file.changed().then(
    (change) => `${change}: exiting to restart with the new configuration`,
    (error: unknown) => `Cannot watch the configuration file: ${String(error)}`,
  );
  log.error(new Error(reason), "command failed");
  return 1;
}

/** Rejects, with the previous settings in force again, when they do not fit the node or the machine refuses. */
async function applyInPlace(
  next: ValidConfig,
  { log: opened }: Pick<DaemonOptions, "log">,
  { settings, node, families, prepare }: StartedNode,
  wake: () => void,
  log: Log,
): Promise<void> {
  const warnings = () => warningsOf(settings, node, families.length === 2);
  const [before, known] = [settings.config, new Set(warnings().map(({ message }) => message))];
  settings.setConfig(next);
  try {
    reportWarnings(
      warnings().filter(({ message, fatal }) => fatal || !known.has(message)),
      log,
    );
    await prepare();
  } catch (error) {
    settings.setConfig(before);
    // A Sync may have begun with the settings that are refused.
    wake();
    throw error;
  }
  opened.setVerbosity(next.logging.verbosity);
  wake();
}
