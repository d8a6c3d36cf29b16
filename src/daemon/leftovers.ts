// Removes what other modes left on this node: all of it with `--cleanup`, or what the mode at work replaces.
import type { ValidConfig } from "../config/config.ts";
import { HostError } from "../host/error.ts";
import type { Family } from "../model/address.ts";
import { modes } from "../modes/index.ts";
import type { Mode } from "../modes/mode.ts";
import { nothingRemoved } from "../modes/removed.ts";
import { systemClock } from "../observe/clock.ts";
import type { Log } from "../observe/log/log.ts";
import type { LoopObserver } from "../sync/loop.ts";

/** `--cleanup`: every mode, even if another one fails. Resolves with the exit code. */
export async function cleanUpAll(log: Log): Promise<number> {
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

type Named = readonly [name: string, mode: Mode];

/** Before the first Sync: rules that lead to sockets of a process that has ended. */
export function removeDeadRelays(config: ValidConfig, log: Log, signal: AbortSignal): Promise<void> {
  return removeLeftovers(config, log, ([, { conntrack }]) => conntrack === "own", signal);
}

/** After the first successful Sync of every family: until then, rules of another mode keep serving. */
export function removeOtherRules(
  config: ValidConfig,
  families: readonly Family[],
  log: Log,
  signal: AbortSignal,
): Pick<LoopObserver, "synced"> {
  const awaited = new Set(families);
  return {
    synced({ family, outcome }) {
      if (outcome.kind !== "ok" || !awaited.delete(family) || awaited.size > 0) return;
      void removeLeftovers(config, log, ([, { conntrack }]) => conntrack === "shared", signal);
    },
  };
}

/** How often to check whether the last connections through another mode have ended. */
const releaseEveryMs = 60_000;

/** Failures are logged only. What connections still pass through is removed after they end. */
async function removeLeftovers(
  config: ValidConfig,
  log: Log,
  concerns: (entry: Named) => boolean,
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
      log.v(2, "Waiting for connections through another mode to end", { mode: name });
      const cancel = systemClock.after(releaseEveryMs, () => {
        signal.removeEventListener("abort", cancel);
        void removeLeftovers(config, log, ([each]) => each === name, signal);
      });
      signal.addEventListener("abort", cancel);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      log.v(2, "Cannot remove leftovers of another mode", { mode: name, reason: error.message });
    }
  }
}
