// The kernel's connection tracking: flows are streamed past a test, and those that are chosen are deleted exactly.
import type { Family } from "../../model/address.ts";
import { HostError } from "../error.ts";
import { dump } from "./dump.ts";
import { type Flow, FlowCursor, type FlowView, writeFlow, writeProtocolFilter } from "./flow.ts";
import { addFlag, endMessage, flag, messagesIn, messageType } from "./message.ts";
import { errnoName } from "./native.ts";
import { beginNetfilter, type NfFamily, netfilterHeaderLength, subsystem } from "./netfilter.ts";
import { mustKnow, type NetlinkSocket, type Place, refused, withSocket } from "./socket.ts";
import { Writer } from "./writer.ts";

export type { Flow, FlowView } from "./flow.ts";

/** Which flows to read. */
export type FlowQuery = {
  readonly family: Family;
  /** IP protocol number; absent is any. */
  readonly protocol?: number;
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
const attempts = 5;
const families: Readonly<Record<Family, NfFamily>> = { ipv4: "ip", ipv6: "ip6" };

/** Deletes every flow that the query selects. Memory does not grow with the number of flows. */
export async function cleanFlows(
  query: FlowQuery,
  place: Place = {},
  signal?: AbortSignal,
): Promise<Cleaning> {
  return withSocket("netfilter", place, async (socket) => {
    let deleted = 0;
    for (let attempt = 1; ; attempt++) {
      let examined = 0;
      const counting = { ...query, select: (flow: FlowView) => ++examined > 0 && query.select(flow) };
      try {
        for await (const flows of readFlows(counting, place, signal)) {
          deleted += await deleteFlows(socket, flows, signal);
        }
        return { examined, deleted, complete: true };
      } catch (error) {
        if (!(error instanceof HostError) || error.errno !== "EINTR") throw error;
        if (attempt === attempts) return { examined, deleted, complete: false };
      }
    }
  });
}

/** Streams the selected flows, some dozens at a time. */
export async function* readFlows(
  query: FlowQuery,
  place: Place = {},
  signal?: AbortSignal,
): AsyncGenerator<Flow[]> {
  const cursor = new FlowCursor(query.family);
  for await (const { buffer, length } of dump(
    "netfilter",
    "read tracked flows",
    request(query),
    place,
    signal,
  )) {
    const selected: Flow[] = [];
    for (const { type, start, end } of messagesIn(buffer, length)) {
      if (type <= messageType.overrun || !cursor.read(buffer, start + netfilterHeaderLength, end)) continue;
      if (query.protocol !== undefined && cursor.protocol !== query.protocol) continue;
      if (query.select(cursor)) selected.push(cursor.flow());
    }
    if (selected.length > 0) yield selected;
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

function request({ family, protocol }: FlowQuery): Uint8Array {
  const out = new Writer(128);
  const at = beginNetfilter(out, GET, flag.request | flag.dump, 1, families[family]);
  if (protocol !== undefined) writeProtocolFilter(out, protocol);
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
