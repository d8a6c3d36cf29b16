// The first Snapshot of a Source: for commands that look once and go.
import type { Clock } from "../model/clock.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { openSource, type SourceSpec } from "./index.ts";
import { realWorld } from "./world.ts";

export async function firstSnapshot(
  spec: SourceSpec,
  nodeName: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<Snapshot> {
  const life = new AbortController();
  signal.addEventListener("abort", () => life.abort(), { once: true });
  try {
    const source = await openSource(spec, nodeName, realWorld(clock), life.signal);
    for await (const snapshot of source.snapshots(life.signal)) return snapshot;
    throw new Error("Cannot read the cluster: the source ended before it said anything");
  } finally {
    life.abort();
  }
}
