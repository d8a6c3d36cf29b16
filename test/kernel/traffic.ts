// New flows at short intervals: whoever leaves a gap for new connections, however short, is found out.
import { setTimeout as sleep } from "node:timers/promises";
import { caseText } from "../scenarios.ts";
import { fateOf, type Probe } from "./probe.ts";
import { fateText, longPatienceMs } from "./send-packet.ts";
import type { World } from "./world.ts";

export type Traffic = {
  /** Ends it, and tells of every flow that was not answered. */
  stop(): Promise<string[]>;
  sent(): number;
};

/** Use UDP: what is lost is not sent again, so it is told. */
export function steadyTraffic(world: World, probes: readonly Probe[], everyMs = 10): Traffic {
  const stop = new AbortController();
  const flows: Promise<string[]>[] = [];
  const start = Date.now();
  const one = async (probe: Probe): Promise<string[]> => {
    const at = Date.now() - start;
    const fate = await fateOf(world, probe, longPatienceMs);
    return fate.kind === "answered" ? [] : [`after ${at} ms: ${caseText(probe)}: ${fateText(fate)}`];
  };
  const running = (async () => {
    for (let i = 0; !stop.signal.aborted; i++) {
      flows.push(one(probes[i % probes.length]!));
      await sleep(everyMs);
    }
  })();
  return {
    async stop() {
      stop.abort();
      await running;
      return (await Promise.all(flows)).flat();
    },
    sent: () => flows.length,
  };
}
