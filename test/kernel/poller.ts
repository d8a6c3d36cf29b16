// Waits for many sockets of any namespace, and calls back when something happens on one.
import { readSync, writeSync } from "node:fs";
import { close, eventFd, POLLIN, poll } from "./libc.ts";

export type Poller = {
  /** Calls back on these poll events, until `forget`. */
  watch(fd: number, events: number, callback: (events: number) => void): void;
  /**
   * Calls back after a time in which this thread was free to poll its sockets, and a poll that found nothing on any of
   * them: on a busy machine it waits longer than the clock, so that an answer that is there, or on its way through a
   * server of ours, is not taken for silence. Returns how to cancel it.
   */
  afterQuiet(ms: number, callback: () => void): () => void;
  /** Stops watching; the caller closes the file. */
  forget(fd: number): void;
  /** Ends the loop; files that are still watched are closed. */
  stop(): Promise<void>;
};

export function startPoller(): Poller {
  const watched = new Map<number, { readonly events: number; readonly callback: (events: number) => void }>();
  const notify = eventFd();
  const wake = (): void => void writeSync(notify, one);
  let running = true;
  let ticks = 0;
  const waiting = new Set<Wait>();
  const isDue = (wait: Wait) => wait.due <= ticks;
  const ticker = setInterval(() => {
    ticks++;
    if ([...waiting].some(isDue)) wake();
  }, tickMs);

  const loop = async (): Promise<void> => {
    while (running) {
      const polled = [...watched];
      const due = [...waiting].filter(isDue);
      const events = await poll(
        [[notify, POLLIN], ...polled.map(([fd, { events }]) => [fd, events] as const)],
        due.length > 0 ? 0 : 1000,
      );
      if (events[0] !== 0) readSync(notify, Buffer.alloc(8));
      for (const [i, [fd, watch]] of polled.entries()) {
        // Meanwhile a callback may have removed the file, and another socket may have its number.
        if (events[i + 1] !== 0 && watched.get(fd) === watch) watch.callback(events[i + 1]!);
      }
      const isQuiet = events.slice(1).every((event) => event === 0);
      for (const wait of due) {
        wait.polls++;
        if ((isQuiet || wait.polls >= pollsAtMost) && waiting.delete(wait)) wait.callback();
      }
    }
  };
  const ended = loop();

  return {
    watch(fd, events, callback) {
      watched.set(fd, { events, callback });
      wake();
    },
    afterQuiet(ms, callback) {
      const wait = { due: ticks + Math.ceil(ms / tickMs), polls: 0, callback };
      waiting.add(wait);
      return () => void waiting.delete(wait);
    },
    forget(fd) {
      watched.delete(fd);
    },
    async stop() {
      running = false;
      clearInterval(ticker);
      wake();
      await ended;
      for (const fd of watched.keys()) close(fd);
      watched.clear();
      close(notify);
    },
  };
}

type Wait = {
  readonly due: number;
  /** How often all sockets were polled since then. */
  polls: number;
  readonly callback: () => void;
};

const tickMs = 50;
/** Where there is always something on some socket. */
const pollsAtMost = 50;
const one = Buffer.alloc(8);
one.writeBigUInt64LE(1n);
