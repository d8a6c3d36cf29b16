// New flows at short intervals: detects any gap for new connections, however short.
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { caseText } from "../scenarios.ts";
import { type Probe, resultOf } from "./probe.ts";
import { longTimeoutMs, resultText } from "./send-packet.ts";
import type { World } from "./world.ts";

export type Traffic = {
  /** Ends it, and returns every flow without a response. */
  stop(): Promise<string[]>;
  sent(): number;
};

/** Ends with the test at the latest. Use UDP: a lost datagram is not sent again, so it is reported. */
export function steadyTraffic(world: World, probes: readonly Probe[], everyMs = 10): Traffic {
  const stop = new AbortController();
  const flows: Promise<string[]>[] = [];
  const start = Date.now();
  const one = async (probe: Probe): Promise<string[]> => {
    const at = Date.now() - start;
    const lost = (reason: string) => [`after ${at} ms: ${caseText(probe)}: ${reason}`];
    try {
      const result = await resultOf(world, probe, longTimeoutMs);
      return result.kind === "answered" ? [] : lost(resultText(result));
    } catch (error) {
      return lost(String(error));
    }
  };
  const running = (async () => {
    for (let i = 0; !stop.signal.aborted; i++) {
      flows.push(one(probes[i % probes.length]!));
      await sleep(everyMs);
    }
  })();
  onTestFinished(() => stop.abort());
  return {
    async stop() {
      stop.abort();
      await running;
      return (await Promise.all(flows)).flat();
    },
    sent: () => flows.length,
  };
}
