// Watches the configuration file of `turnout run --config-changes=apply`: checks, logs and applies changes.
import { readFile } from "node:fs/promises";
import type { Completed } from "../../config/complete.ts";
import type { ValidConfig } from "../../config/config.ts";
import { type ConfigChange, compareConfigs } from "../../config/live.ts";
import type { Clock } from "../../model/clock.ts";
import type { Log } from "../../observe/log/log.ts";

export type ChangeWorld = {
  readonly clock: Clock;
  readonly log: Log;
  readonly read: (path: string) => Promise<string>;
  /** Flags and this text of the file together. */
  readonly complete: (text: string) => Completed;
  readonly running: () => ValidConfig;
  /** Rejects, with nothing changed, when the machine refuses. */
  readonly apply: (next: ValidConfig) => Promise<void>;
  /** What to do about settings that a running daemon cannot change; null: they wait for a restart. */
  readonly restart: Restart | null;
};

export type Restart = {
  /** Why this node could not start with the configuration; null: it can. */
  readonly refusal: (next: ValidConfig) => Promise<string | null>;
  /** Ends the process, to be started again by its supervisor. */
  readonly exit: () => void;
};

const pollEveryMs = 1_000;

export const readText = (path: string) => readFile(path, "utf8");

/**
 * Reads the path once a second instead of watching the file: a ConfigMap update makes the path a link to another file.
 * The same text read twice is complete.
 */
export function followConfig(path: string, text: string, world: ChangeWorld, signal: AbortSignal): void {
  let known = text;
  let seen = text;
  const poll = async () => {
    const now = await world.read(path).catch(() => seen);
    if (now === seen && now !== known) {
      known = now;
      await consider(path, now, world);
    }
    seen = now;
    if (!signal.aborted) cancel = world.clock.after(pollEveryMs, () => void poll());
  };
  let cancel = world.clock.after(pollEveryMs, () => void poll());
  signal.addEventListener("abort", () => cancel(), { once: true });
}

async function consider(path: string, text: string, world: ChangeWorld): Promise<void> {
  const { log } = world;
  const completed = world.complete(text);
  if (!completed.ok) {
    const at = completed.places.length === 0 ? {} : { at: completed.places.join(", ") };
    log.error(new Error(completed.error), "Changed configuration is not valid; the running one stays", {
      file: path,
      ...at,
    });
    return;
  }
  const { live, later, next } = compareConfigs(world.running(), completed.config);
  if (later.length > 0 && (await restarts(completed.config, later, world))) return;
  if (live.length === 0) return;
  try {
    await world.apply(next);
    for (const { field, from, to } of live) log.info("Changed setting is in force", { field, from, to });
  } catch (error) {
    log.error(
      error instanceof Error ? error : new Error(String(error)),
      "Cannot put changed settings in force",
      {
        fields: live.map(({ field }) => field).join(", "),
      },
    );
  }
}

/** Whether the process ends, so that the changes are in force after its restart. */
async function restarts(
  next: ValidConfig,
  changes: readonly ConfigChange[],
  { log, restart }: ChangeWorld,
): Promise<boolean> {
  const refusal = restart === null ? "requires a restart" : await restart.refusal(next);
  for (const { field, from, to } of changes) {
    const fields = { field, from, to };
    if (refusal === null) log.info("Changed setting requires a restart", fields);
    else log.error(new Error(refusal), "Changed setting is not in force", fields);
  }
  if (restart === null || refusal !== null) return false;
  log.info("Exiting to restart with the changed configuration");
  restart.exit();
  return true;
}
