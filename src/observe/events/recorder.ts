// Sends Events to the API server without blocking the caller: queued, rate-limited, retried, and finally dropped.
import type { Clock } from "../clock.ts";
import type { Log } from "../log/log.ts";
import {
  createRequest,
  type EventReason,
  type EventRequest,
  eventName,
  eventReasons,
  type ProxyEvent,
  type Regarding,
  seriesKey,
  seriesRequest,
} from "./event.ts";

/** Sends a request and resolves with the HTTP status; rejects when there is no answer. */
export type SendEvent = (request: EventRequest) => Promise<number>;

export type DropReason = "queue-full" | "rejected" | "retries";

export type EventWorld = {
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly log: Log;
  readonly onDropped: (why: DropReason) => void;
};

/** An Event of this daemon, for its status; times are milliseconds since 1970. */
export type RecordedEvent = Pick<ProxyEvent, "reason" | "regarding" | "note" | "at" | "count" | "lastAt"> & {
  readonly type: "Normal" | "Warning";
  /** What became of the last request about it: waiting, sent to the API server, or given up. */
  readonly delivery: "waiting" | "sent" | "given up";
};

export type Events = {
  readonly record: (reason: EventReason, regarding: Regarding, note: string) => void;
  /** The latest, newest first. */
  readonly recent: () => readonly RecordedEvent[];
  /** Until then Events wait: those of the start are not lost. */
  readonly connect: (send: SendEvent) => void;
  /** Resolves when nothing is waiting, or after `ms`: for Events recorded just before exit. */
  readonly drain: (ms: number) => Promise<void>;
  readonly close: () => void;
};

/** An Event that may still become a series, or is one. */
type Tracked = { -readonly [Key in keyof ProxyEvent]: ProxyEvent[Key] } & {
  /** On the steady clock. */
  sentAt: number;
  seenAt: number;
  waiting: boolean;
  delivery: RecordedEvent["delivery"];
};

/** Kept for the status. */
const mostRecent = 20;
const limits = { queue: 1000, tracked: 1000, tries: 12, burst: 25 } as const;
const retryMs = 10_000;
const refillMs = 1_000;
const finishMs = 6 * 60_000;
const refreshMs = 30 * 60_000;

export function openEvents(hostname: string, world: EventWorld): Events {
  const { clock, log } = world;
  const queue = openQueue(hostname, world);
  const tracked = new Map<string, Tracked>();
  const recent = openRecent();
  const nextName = openNames();
  let cancelSweep: (() => void) | null = null;
  let closed = false;

  function start(key: string, occurred: Pick<ProxyEvent, "reason" | "regarding" | "note">): void {
    const at = clock.wall();
    if (tracked.size >= limits.tracked) tracked.delete(tracked.keys().next().value!);
    const times = { at, lastAt: at, count: 1, seenAt: clock.steady(), sentAt: 0 };
    const name = eventName(occurred.regarding, nextName(at));
    const event: Tracked = { name, ...occurred, ...times, waiting: false, delivery: "waiting" };
    tracked.set(key, event);
    recent.add(event);
    queue.add(event, true);
  }

  /** The second occurrence makes it a series immediately; later ones are counted and sent from time to time. */
  function repeat(event: Tracked): void {
    event.count++;
    event.lastAt = clock.wall();
    event.seenAt = clock.steady();
    if (event.count === 2) queue.add(event, false);
  }

  /** Ends series that have not occurred for a while, and renews active ones before the API server deletes them. */
  function sweep(): void {
    cancelSweep = null;
    const now = clock.steady();
    for (const [key, event] of tracked) {
      const isOver = now - event.seenAt >= finishMs;
      if (event.count > 1 && (isOver || now - event.sentAt >= refreshMs)) queue.add(event, false);
      if (isOver) tracked.delete(key);
    }
    if (tracked.size > 0 && !closed) cancelSweep = clock.after(finishMs, sweep);
  }

  return {
    record(reason, regarding, note) {
      const { action, type } = eventReasons[reason];
      const { name: object, kind } = regarding;
      log.v(2, "Event occurred", { object, kind, type, reason, action, note });
      const key = seriesKey(reason, regarding);
      if (tracked.has(key)) repeat(tracked.get(key)!);
      else start(key, { reason, regarding, note });
      cancelSweep ??= clock.after(finishMs, sweep);
    },
    recent: recent.list,
    connect: queue.connect,
    drain: queue.drain,
    close() {
      closed = true;
      queue.close();
      cancelSweep?.();
    },
  };
}

/** The latest Events, which count on while they are listed. */
function openRecent() {
  const latest: Tracked[] = [];
  return {
    add(event: Tracked) {
      latest.unshift(event);
      latest.length = Math.min(latest.length, mostRecent);
    },
    list: () => latest.map(recordedEvent),
  };
}

function recordedEvent({ reason, regarding, note, at, count, lastAt, delivery }: Tracked): RecordedEvent {
  return { reason, type: eventReasons[reason].type, regarding, note, at, count, lastAt, delivery };
}

/** Numbers for the names of Events: nanoseconds since 1970, and never the same twice. */
function openNames(): (wallMs: number) => bigint {
  let last = 0n;
  return (wallMs) => {
    const now = BigInt(Math.round(wallMs)) * 1_000_000n;
    last = now > last ? now : last + 1n;
    return last;
  };
}

type Queue = Pick<Events, "connect" | "drain" | "close"> & {
  readonly add: (event: Tracked, isNew: boolean) => void;
};

/** Sends one Event after another, and retries each a few times. */
function openQueue(hostname: string, world: EventWorld): Queue {
  const { clock } = world;
  const queue: { event: Tracked; isNew: boolean }[] = [];
  const idle = new Set<() => void>();
  const tokens = openTokens(clock);
  let deliver: ((event: Tracked, isNew: boolean) => Promise<void>) | null = null;
  let closed = false;
  let sending = false;

  async function pump(): Promise<void> {
    if (sending || deliver === null) return;
    sending = true;
    for (let item = queue.shift(); item !== undefined && !closed; item = queue.shift()) {
      await tokens.take();
      await deliver(item.event, item.isNew);
    }
    sending = false;
    for (const done of idle) done();
  }

  return {
    add(event, isNew) {
      if (event.waiting && !isNew) return;
      if (queue.length >= limits.queue) {
        event.delivery = "given up";
        world.onDropped("queue-full");
        return;
      }
      event.waiting = true;
      event.delivery = "waiting";
      queue.push({ event, isNew });
      void pump();
    },
    connect(send) {
      deliver = deliveryWith(send, hostname, world, () => closed);
      void pump();
    },
    drain(ms) {
      if (!sending && (queue.length === 0 || deliver === null)) return Promise.resolve();
      return new Promise((resolve) => {
        const done = () => {
          cancel();
          idle.delete(done);
          resolve();
        };
        const cancel = clock.after(ms, done);
        idle.add(done);
      });
    },
    close() {
      closed = true;
    },
  };
}

function deliveryWith(send: SendEvent, hostname: string, world: EventWorld, isClosed: () => boolean) {
  const { clock, log } = world;
  const reporter = { reportingController: "kube-proxy", reportingInstance: `kube-proxy-${hostname}` };

  async function attempt(event: Tracked, isNew: boolean): Promise<"done" | "retry" | "rejected"> {
    try {
      let status = await send(isNew ? createRequest(event, reporter) : seriesRequest(event));
      // Events live for an hour: the one this series belongs to may be gone.
      if (status === 404 && !isNew) status = await send(createRequest(event, reporter));
      if (status < 300) return "done";
      const passing = status === 429 || status >= 500 || (status === 409 && !isNew);
      return passing ? "retry" : "rejected";
    } catch {
      return "retry";
    }
  }

  return async (event: Tracked, isNew: boolean): Promise<void> => {
    for (let tries = 1; !isClosed(); tries++) {
      event.waiting = false;
      event.sentAt = clock.steady();
      const outcome = await attempt(event, isNew);
      if (outcome === "done") {
        event.delivery = "sent";
        return;
      }
      if (outcome === "rejected" || tries === limits.tries) {
        event.delivery = "given up";
        world.onDropped(outcome === "rejected" ? "rejected" : "retries");
        log.v(2, "Event given up", { event: event.name, reason: event.reason, tries });
        return;
      }
      await pause(clock, retryMs * (1 + world.random() / 4));
    }
  };
}

/** A token bucket: a burst immediately, then one after another. */
function openTokens(clock: Clock) {
  let tokens: number = limits.burst;
  let at = clock.steady();
  return {
    async take(): Promise<void> {
      const now = clock.steady();
      tokens = Math.min(limits.burst, tokens + (now - at) / refillMs) - 1;
      at = now;
      if (tokens < 0) await pause(clock, -tokens * refillMs);
    },
  };
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}
