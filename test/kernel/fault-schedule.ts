// A fault schedule for a cluster and a node: the faults of one round and how many of each, injected one by one and counted when they occur.
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault, RequestMatch } from "../../playground/api/faults.ts";
import type { ShiftedClock } from "./shifted-clock.ts";
import type { Daemon, Site } from "./site.ts";

/** An answer of the API server that goes wrong, or something done to the server, the node or the process. */
type Trouble = { readonly perHour: number } & (
  | { readonly fault: Fault; readonly match?: RequestMatch }
  | { readonly act: (scene: Scene) => void | Promise<void> }
);

export type Scene = {
  readonly site: Site;
  readonly daemon: Daemon;
  readonly clock: ShiftedClock | null;
  /** Removes every rule on the node. */
  readonly flush: () => void;
};

const watches: RequestMatch = { verb: "watch" };

/** About one fault in 25 seconds, for an hour: more than the worst hours that operators write about. */
const troubles: Readonly<Record<string, Trouble>> = {
  "410 instead of an answer": { perHour: 6, fault: { kind: "status", code: 410 } },
  "429, with a retry after 1 s": { perHour: 12, fault: { kind: "status", code: 429, retryAfter: 1 } },
  "500 instead of an answer": { perHour: 6, fault: { kind: "status", code: 500 } },
  "503 instead of an answer": { perHour: 6, fault: { kind: "status", code: 503 } },
  "no answer": { perHour: 6, fault: { kind: "hang" } },
  "connection closed before an answer": { perHour: 12, fault: { kind: "drop" } },
  "page of a proxy in between": {
    perHour: 4,
    fault: { kind: "body", contentType: "text/html", body: "<html>a proxy in between</html>" },
  },
  "half an event": {
    perHour: 4,
    match: watches,
    fault: { kind: "prelude", body: '{"type":"ADDED","object":\n' },
  },
  "streaming lists not known": { perHour: 4, match: watches, fault: { kind: "ignore-initial-events" } },
  "answer reset midway": { perHour: 12, fault: { kind: "reset", afterBytes: 300 } },
  "answer cut short": { perHour: 12, fault: { kind: "truncate", afterBytes: 500 } },
  "watch that hangs": { perHour: 6, match: watches, fault: { kind: "silent" } },
  "answer in drips": { perHour: 6, fault: { kind: "drip", bytes: 40, everyMs: 5 } },
  "API server restarted": { perHour: 6, act: restartApi },
  "all connections cut": { perHour: 12, act: ({ site }) => site.api.dropConnections() },
  "all watches expired at once": { perHour: 6, act: expireWatches },
  "rules flushed": { perHour: 6, act: ({ flush }) => flush() },
  "clock set": { perHour: 12, act: ({ clock }) => clock?.set(anyOf(clockShifts)) },
  "process stopped for a while": { perHour: 6, act: freeze },
};

const [hour, day] = [3600, 86_400];
const clockShifts = [0, 1, -1, hour, -hour, day, -day, 3650 * day, -3650 * day];
/** Faults prepared for the next requests; more would not occur sooner: the daemon backs off. */
const mostArmed = 3;
/** In hours; enough for a short run to see each act once. */
const slack = 0.1;

export class FaultSchedule {
  readonly #scene: Scene;
  readonly #met = new Map<string, number>(Object.keys(troubles).map((name) => [name, 0]));

  constructor(scene: Scene) {
    this.#scene = scene;
    const names = new Map(
      Object.entries(troubles).flatMap(([name, trouble]) =>
        "fault" in trouble ? [[trouble.fault, name] as const] : [],
      ),
    );
    scene.site.api.faults.onFault = (fault) => this.#count(names.get(fault)!);
  }

  /** Injects one of the faults that occurred least; faults without a request wait for those with one. */
  async deal(): Promise<void> {
    const { api } = this.#scene.site;
    const isOpen = ([name, trouble]: [string, Trouble]) =>
      "act" in trouble ? this.#hours(name) <= this.#metByRequests() + slack : api.faults.armed < mostArmed;
    const open = Object.entries(troubles).filter(isOpen);
    if (open.length === 0) return;
    const least = Math.min(...open.map(([name]) => this.#hours(name)));
    const [name, trouble] = anyOf(open.filter(([each]) => this.#hours(each) <= least));
    if ("act" in trouble) {
      await trouble.act(this.#scene);
      this.#count(name);
      return;
    }
    api.faults.arm(trouble.match ?? {}, trouble.fault);
    // As servers do from time to time: the clients reconnect and get the fault.
    for (const { wire } of api.watches().slice(0, 1)) wire.end();
  }

  /** How many rounds of every fault occurred. */
  get hours(): number {
    return Math.min(...[...this.#met.keys()].map((name) => this.#hours(name)));
  }

  report(): string {
    const lines = [...this.#met].map(([name, count]) => {
      const { perHour } = troubles[name]!;
      return `${String(count).padStart(6)}  ${name} (${perHour} in a round)`;
    });
    return [`faults, in ${this.hours.toFixed(1)} rounds:`, ...lines].join("\n");
  }

  /** How many rounds all requests together correspond to. */
  #metByRequests(): number {
    const names = Object.keys(troubles).filter((name) => "fault" in troubles[name]!);
    const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
    return sum(names.map((name) => this.#met.get(name)!)) / sum(names.map((name) => troubles[name]!.perHour));
  }

  #hours(name: string): number {
    return this.#met.get(name)! / troubles[name]!.perHour;
  }

  #count(name: string): void {
    this.#met.set(name, this.#met.get(name)! + 1);
  }
}

async function restartApi({ site }: Scene): Promise<void> {
  await site.api.close();
  await sleep(Math.random() * 2000);
  await site.openApi();
}

/** As after a compaction: a watch that reconnects gets 410. */
function expireWatches({ site }: Scene): void {
  site.api.store.compact();
  site.api.dropConnections();
}

async function freeze({ daemon }: Scene): Promise<void> {
  daemon.kill("SIGSTOP");
  await sleep(500 + Math.random() * 2500);
  daemon.kill("SIGCONT");
}

function anyOf<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)]!;
}
