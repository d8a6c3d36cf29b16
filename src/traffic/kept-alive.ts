// How it is known that a client keeps an unreplied flow alive: by the entry itself, or by two readings of the table.
import type { FlowView } from "../model/flow.ts";
import type { KeptAlive } from "./classify.ts";
import { duration } from "./duration.ts";
import { flowName } from "./flow-names.ts";

/** With age or counters in the entry one reading shows it; otherwise a second one is needed. */
export function keptAliveByEntry(now: number): KeptAlive {
  return ({ counters, startedAt, timeout }) => {
    // The clock may have been set since: then the age means nothing.
    const age = startedAt === null ? -1 : now - startedAt;
    if (age >= longUnrepliedMs && timeout > 0)
      return `no answer for ${duration(Math.round(age / 1000))}, and the client is still sending`;
    if (counters !== null && counters.reply.packets === 0 && counters.original.packets >= manyPackets)
      return `${counters.original.packets} packets from the client, none from the endpoint`;
    return null;
  };
}

/** Longer than the kernel keeps an unreplied flow without further packets: 30 s for UDP, 120 s for SYN_SENT. */
const longUnrepliedMs = 150_000;
/** More than a client sends before it gives up on one question. */
const manyPackets = 8;

/** Most unreplied flows that a first reading keeps; 16 bytes each. */
const mostKept = 262_144;

/** Two readings of one table: an entry whose timeout was renewed in between received another packet. */
export class UnrepliedReadings {
  readonly #timeouts = new Map<number, number>();
  #skipped = 0;

  /** Call it for every unreplied flow of the first reading. */
  note(flow: FlowView): void {
    if (this.#timeouts.size < mostKept) this.#timeouts.set(flowName(flow), flow.timeout);
    else this.#skipped++;
  }

  /** Whether a second reading can find anything. */
  get isEmpty(): boolean {
    return this.#timeouts.size === 0;
  }

  /** Flows that were not kept: they are not among the findings. */
  get skipped(): number {
    return this.#skipped;
  }

  /** For the second reading, so many seconds after the first. */
  keptAlive(seconds: number): KeptAlive {
    return (flow) => {
      const before = this.#timeouts.get(flowName(flow));
      // The kernel counts in whole seconds, and the readings take time themselves.
      if (before === undefined || flow.timeout <= before - seconds + 1) return null;
      return `the client sent again within ${seconds} s, and nothing was answered`;
    };
  }
}
