// Waits for many sockets at once, of any namespace, and calls back when something happens on one.
import { readSync, writeSync } from "node:fs";
import { close, eventFd, POLLIN, poll } from "./libc.ts";

export type Poller = {
  /** Calls back on these poll events, until `forget`. */
  watch(fd: number, events: number, callback: (events: number) => void): void;
  /**
   * Calls back after a time in which this thread was free to look at its sockets: on a busy machine it waits longer
   * than the clock, so that an answer that is there is not taken for silence. Returns how to cancel it.
   */
  afterQuiet(ms: number, callback: () => void): () => void;
  /** Stops watching; the caller closes the file. */
  forget(fd: number): void;
  /** Ends the loop; files that are still watched are closed. */
  stop(): Promise<void>;
};

export function startPoller(): Poller {
  const watched = new Map<number, { readonly events: number; readonly callback: (events: number) => void }>();
  const bell = eventFd();
  const ring = (): void => void writeSync(bell, one);
  let running = true;
  let ticks = 0;
  const waiting = new Set<{ readonly due: number; readonly callback: () => void }>();
  const ticker = setInterval(() => {
    ticks++;
    for (const wait of waiting) {
      if (wait.due > ticks) continue;
      waiting.delete(wait);
      wait.callback();
    }
  }, tickMs);

  const loop = async (): Promise<void> => {
    while (running) {
      const asked = [...watched];
      const events = await poll(
        [[bell, POLLIN], ...asked.map(([fd, { events }]) => [fd, events] as const)],
        1000,
      );
      if (events[0] !== 0) readSync(bell, Buffer.alloc(8));
      for (const [i, [fd, watch]] of asked.entries()) {
        // Meanwhile a callback may have forgotten the file, and another socket may have got its number.
        if (events[i + 1] !== 0 && watched.get(fd) === watch) watch.callback(events[i + 1]!);
      }
    }
  };
  const ended = loop();

  return {
    watch(fd, events, callback) {
      watched.set(fd, { events, callback });
      ring();
    },
    afterQuiet(ms, callback) {
      const wait = { due: ticks + Math.ceil(ms / tickMs), callback };
      waiting.add(wait);
      return () => void waiting.delete(wait);
    },
    forget(fd) {
      watched.delete(fd);
    },
    async stop() {
      running = false;
      clearInterval(ticker);
      ring();
      await ended;
      for (const fd of watched.keys()) close(fd);
      watched.clear();
      close(bell);
    },
  };
}

const tickMs = 50;
const one = Buffer.alloc(8);
one.writeBigUInt64LE(1n);
