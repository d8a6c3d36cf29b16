// Requests at a steady rate from a network namespace, sent by a process of its own, and how many of them failed.
import { spawn } from "node:child_process";
import { join } from "node:path";

export type Count = {
  readonly sent: number;
  readonly failed: number;
  /** Whether the last requests, half a second's worth, all succeeded. */
  readonly served: boolean;
  /** How often requests failed for which reason: an error code, a status, or `timeout`. */
  readonly reasons: Readonly<Record<string, number>>;
  /** How long the sender did not run, in pauses of a second or longer: nothing was sent then. */
  readonly pausedMs: number;
};

/** A request that has succeeded (null) or failed, by its place in the order of sending. */
export type Ended = { readonly index: number; readonly reason: string | null };

export type Sender = { stop(): Promise<Count> };

const rate = 50;
const program = join(import.meta.dirname, "requests-process.ts");

/** Starts sending from the network namespace at this path. */
export function startSender(netns: string, address: string): Sender {
  const args = [`--net=${netns}`, "--", process.execPath, program, address, String(rate)];
  const child = spawn("nsenter", args, { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
  });
  const closed = new Promise((resolve) => child.once("close", resolve));
  return {
    async stop() {
      child.stdin.end();
      await closed;
      return JSON.parse(output) as Count;
    },
  };
}

export type Schedule = {
  /** How many requests are due now, this long after the start. */
  due(elapsedMs: number): number;
  readonly pausedMs: number;
};

/**
 * A steady rate: a busy machine does not lower it. After a pause of a second or longer the missed requests are not sent: all in one
 * burst, they would fail because of their number.
 */
export function createSchedule(perSecond: number): Schedule {
  const periodMs = 1000 / perSecond;
  let nextMs = 0;
  let pausedMs = 0;
  return {
    due(elapsedMs) {
      const lateMs = elapsedMs - nextMs;
      if (lateMs >= 1000) {
        pausedMs += lateMs;
        nextMs = elapsedMs;
      }
      const number = Math.max(0, Math.floor((elapsedMs - nextMs) / periodMs) + 1);
      nextMs += number * periodMs;
      return number;
    },
    get pausedMs() {
      return pausedMs;
    },
  };
}

export function count(ended: readonly Ended[], pausedMs = 0): Count {
  const failed = ended.filter(({ reason }) => reason !== null);
  const byReason = Object.groupBy(failed, ({ reason }) => reason!);
  const lastFailed = Math.max(-1, ...failed.map(({ index }) => index));
  return {
    sent: ended.length,
    failed: failed.length,
    served: ended.length - 1 - lastFailed >= rate / 2,
    reasons: Object.fromEntries(Object.entries(byReason).map(([reason, all]) => [reason, all!.length])),
    pausedMs: Math.round(pausedMs),
  };
}
