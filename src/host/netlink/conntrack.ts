// The kernel's connection tracking: flows are streamed past a test, and those that are chosen are deleted exactly.
import type { Family } from "../../model/address.ts";
import { HostError } from "../error.ts";
import { attributeType, nextAttribute } from "./attributes.ts";
import { type Datagram, type DumpSocket, dump, dumpOn, openDumpSocket } from "./dump.ts";
import { type Flow, FlowCursor, type FlowPart, type FlowView, isIn, writeFilter, writeFlow } from "./flow.ts";
import { addFlag, endMessage, flag, messagesIn, messageType } from "./message.ts";
import { errnoName } from "./native.ts";
import { beginNetfilter, type NfFamily, netfilterHeaderLength, subsystem } from "./netfilter.ts";
import { mustKnow, type NetlinkSocket, openSocket, type Place, refused, sendRequest } from "./socket.ts";
import { Writer } from "./writer.ts";

export type { Flow, FlowView } from "./flow.ts";

/** Which flows to read. */
export type FlowQuery = {
  readonly family: Family;
  /** IP protocol number; absent is any. */
  readonly protocol?: number;
  /** Where alone such flows can be; only with `protocol`. Absent: anywhere. */
  readonly among?: readonly FlowPart[];
  readonly select: (flow: FlowView) => boolean;
};

export type Cleaning = {
  readonly examined: number;
  readonly deleted: number;
  /** False when the table kept changing so much that some flows may be missing. */
  readonly complete: boolean;
};

const GET = (subsystem.conntrack << 8) | 1;
const DELETE = (subsystem.conntrack << 8) | 2;
const GET_STATISTICS = (subsystem.conntrack << 8) | 5;
const ENTRIES = 1;
const attempts = 5;
/** The kernel goes through its whole table for every part: one pays where this many more flows are tracked, up to the limit. */
const flowsPerPart = 10_000;
const mostParts = 12;
const families: Readonly<Record<Family, NfFamily>> = { ipv4: "ip", ipv6: "ip6" };

/** Deletes every flow that the query selects, over sockets of its own. */
export async function cleanFlows(
  query: FlowQuery,
  place: Place = {},
  signal?: AbortSignal,
): Promise<Cleaning> {
  const cleaner = new FlowCleaner(place);
  try {
    return await cleaner.clean(query, signal);
  } finally {
    await cleaner.close();
  }
}

/** Deletes flows over sockets that stay open: closing one takes the kernel milliseconds. One query after the other. */
export class FlowCleaner {
  readonly #place: Place;
  #table: DumpSocket | null = null;
  #requests: NetlinkSocket | null = null;
  #turn: Promise<unknown> = Promise.resolve();
  #opened = 0;
  #dumps = 0;
  /** Whether the kernel sends only the flows that a filter lets through. */
  #filters = true;

  constructor(place: Place = {}) {
    this.#place = place;
  }

  /** What it took so far: tests count it. */
  get used(): { readonly sockets: number; readonly dumps: number } {
    return { sockets: this.#opened, dumps: this.#dumps };
  }

  /** Deletes every flow that the query selects. Memory does not grow with the number of flows. */
  clean(query: FlowQuery, signal?: AbortSignal): Promise<Cleaning> {
    const turn = this.#turn.then(() => this.#clean(query, signal));
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  /** Waits for what is under way. A later query opens sockets again. */
  close(): Promise<void> {
    const turn = this.#turn.then(() => this.#closeSockets());
    this.#turn = turn;
    return turn;
  }

  async #clean(query: FlowQuery, signal?: AbortSignal): Promise<Cleaning> {
    let sum: Cleaning = { examined: 0, deleted: 0, complete: true };
    for (const part of await this.#partsToRead(query, signal)) {
      const { examined, deleted, complete } = await this.#cleanPart(query, part, signal);
      sum = {
        examined: sum.examined + examined,
        deleted: sum.deleted + deleted,
        complete: sum.complete && complete,
      };
      // Then this was the whole table.
      if (!this.#filters) break;
    }
    return sum;
  }

  /** null: the whole table, where that is cheaper. */
  async #partsToRead(query: FlowQuery, signal?: AbortSignal): Promise<readonly (FlowPart | null)[]> {
    const { family, among } = query;
    // Asked for an IPv6 address, Linux sends the flows with any other one: up to 6.18 at least.
    if (among === undefined || family === "ipv6" || !this.#filters) return [null];
    if (among.length <= 1) return among;
    const flows = await countFlows(await this.#forRequests(), signal);
    return among.length <= Math.min(mostParts, 1 + flows / flowsPerPart) ? among : [null];
  }

  async #cleanPart(query: FlowQuery, part: FlowPart | null, signal?: AbortSignal): Promise<Cleaning> {
    let deleted = 0;
    for (let attempt = 1; ; attempt++) {
      let examined = 0;
      const select = (flow: FlowView) => {
        examined++;
        if (part !== null && !isIn(part, flow)) this.#filters = false;
        return query.select(flow);
      };
      const counting = { ...query, select };
      try {
        for await (const flows of flowsIn(await this.#dump(query, part, signal), counting))
          deleted += await deleteFlows(await this.#forRequests(), flows, signal);
        return { examined, deleted, complete: true };
      } catch (error) {
        const isInterrupted = error instanceof HostError && error.errno === "EINTR";
        // An interrupted dump was read to its end; after anything else the rest of it may be waiting.
        if (!isInterrupted) await this.#closeSockets();
        if (!isInterrupted) throw error;
        if (attempt === attempts) return { examined, deleted, complete: false };
      }
    }
  }

  /** None of it is received in the event loop: the kernel reads its whole table for each part, and Syncs would wait for that. */
  async #dump(
    query: FlowQuery,
    part: FlowPart | null,
    signal?: AbortSignal,
  ): Promise<AsyncGenerator<Datagram>> {
    signal?.throwIfAborted();
    if (this.#table === null) {
      this.#table = await openDumpSocket("netfilter", this.#place);
      this.#opened++;
    }
    this.#dumps++;
    return dumpOn(this.#table, task, request(query, part), 0, signal);
  }

  async #forRequests(): Promise<NetlinkSocket> {
    if (this.#requests === null) {
      this.#requests = await openSocket("netfilter", this.#place);
      this.#opened++;
    }
    return this.#requests;
  }

  async #closeSockets(): Promise<void> {
    const [table, requests] = [this.#table, this.#requests];
    this.#table = this.#requests = null;
    table?.close();
    await requests?.close();
  }
}

/** Streams the selected flows, some dozens at a time. */
export function readFlows(query: FlowQuery, place: Place = {}, signal?: AbortSignal): AsyncGenerator<Flow[]> {
  return flowsIn(dump("netfilter", task, request(query), place, signal), query);
}

const task = "read tracked flows";

/** The selected flows of a dump. */
export async function* flowsIn(datagrams: AsyncIterable<Datagram>, query: FlowQuery): AsyncGenerator<Flow[]> {
  const cursor = new FlowCursor(query.family);
  for await (const { buffer, length } of datagrams) {
    const found: Flow[] = [];
    for (const { type, start, end } of messagesIn(buffer, length)) {
      if (type <= messageType.overrun || !cursor.read(buffer, start + netfilterHeaderLength, end)) continue;
      if (query.protocol !== undefined && cursor.protocol !== query.protocol) continue;
      if (query.select(cursor)) found.push(cursor.flow());
    }
    if (found.length > 0) yield found;
  }
}

/** Returns the number of deleted flows: a flow that is gone already does not count. */
export async function deleteFlows(
  socket: NetlinkSocket,
  flows: readonly Flow[],
  signal?: AbortSignal,
): Promise<number> {
  if (flows.length === 0) return 0;
  const reply = await socket.exchange(deletion(flows), signal);
  const failures = reply.answers.filter(({ errno }) => errno !== 0);
  const serious = failures.find(({ errno }) => errnoName(errno) !== "ENOENT");
  if (serious !== undefined) throw refused(`delete ${flows.length} tracked flows`, serious);
  mustKnow(`delete ${flows.length} tracked flows`, reply);
  return flows.length - failures.length;
}

/** How many flows of all kinds are tracked. */
async function countFlows(socket: NetlinkSocket, signal?: AbortSignal): Promise<number> {
  const out = new Writer(64);
  endMessage(out, beginNetfilter(out, GET_STATISTICS, flag.request | flag.acknowledge, 1, null));
  let count = 0;
  await sendRequest(socket, "count tracked flows", out.bytes(), signal, (from, { start, end }) => {
    for (let at = start + netfilterHeaderLength; at + 8 <= end; at = nextAttribute(from, at))
      if (attributeType(from, at) === ENTRIES) count = from.readUInt32BE(at + 4);
  });
  return count;
}

function request({ family, protocol }: FlowQuery, part: FlowPart | null = null): Uint8Array {
  const out = new Writer(128);
  const at = beginNetfilter(out, GET, flag.request | flag.dump, 1, families[family]);
  if (protocol !== undefined) writeFilter(out, protocol, part);
  endMessage(out, at);
  return out.bytes();
}

function deletion(flows: readonly Flow[]): Uint8Array {
  const out = new Writer(flows.length * 128);
  let last = 0;
  for (const [index, flow] of flows.entries()) {
    last = beginNetfilter(out, DELETE, flag.request, index + 1, families[flow.family]);
    writeFlow(out, flow);
    endMessage(out, last);
  }
  addFlag(out, last, flag.acknowledge);
  return out.bytes();
}
