// One tracked flow inside a received message: nothing is copied until it is read.
import { type Address, addressBytes, type Family, formatAddress } from "../../model/address.ts";
import {
  type Counters,
  type Flow,
  type FlowState,
  type FlowView,
  sctpStates,
  type Tuple,
  tcpStates,
} from "../../model/flow.ts";
import { attributeEnd, attributeType, nextAttribute } from "./attributes.ts";
import type { Writer } from "./writer.ts";

export type { Flow, FlowView } from "../../model/flow.ts";

/** IPv4 flows that the kernel can find by one side of them; `address` null: any. */
export type FlowPart =
  | { readonly kind: "sent to"; readonly address: Address | null; readonly port: number }
  | { readonly kind: "answered by"; readonly address: Address; readonly port: number };

export function isIn(part: FlowPart, flow: FlowView): boolean {
  if (part.kind === "answered by")
    return flow.replySourcePort === part.port && flow.replySource === part.address;
  return flow.destinationPort === part.port && (part.address === null || flow.destination === part.address);
}

const ORIGINAL = 1;
const REPLY = 2;
const STATUS = 3;
const PROTOCOL_STATE = 4;
const TIMEOUT = 7;
const MARK = 8;
const ORIGINAL_COUNTERS = 9;
const REPLY_COUNTERS = 10;
const ID = 12;
const ZONE = 18;
const TIMESTAMP = 20;
const IP = 1;
const IPV4_SOURCE = 1;
const IPV4_DESTINATION = 2;
const PROTO = 2;
const PROTO_NUMBER = 1;
const SOURCE_PORT = 2;
const DESTINATION_PORT = 3;

// Positions of the parts of a tuple; 0 where there is none, since no attribute is at the beginning of a message.
class TupleAt {
  source = 0;
  destination = 0;
  sourcePort = 0;
  destinationPort = 0;
  protocol = 0;

  find(from: Buffer, start: number, end: number): void {
    this.source = this.destination = this.sourcePort = this.destinationPort = this.protocol = 0;
    for (let at = start; at + 4 <= end; at = nextAttribute(from, at)) {
      const type = attributeType(from, at);
      if (type === IP) this.#findAddresses(from, at + 4, attributeEnd(from, at));
      else if (type === PROTO) this.#findPorts(from, at + 4, attributeEnd(from, at));
    }
  }

  #findAddresses(from: Buffer, start: number, end: number): void {
    for (let at = start; at + 4 <= end; at = nextAttribute(from, at)) {
      // Odd types are sources, even ones destinations: 1 and 2 of IPv4, 3 and 4 of IPv6.
      if (attributeType(from, at) & 1) this.source = at + 4;
      else this.destination = at + 4;
    }
  }

  #findPorts(from: Buffer, start: number, end: number): void {
    for (let at = start; at + 4 <= end; at = nextAttribute(from, at)) {
      const type = attributeType(from, at);
      if (type === PROTO_NUMBER) this.protocol = at + 4;
      else if (type === SOURCE_PORT) this.sourcePort = at + 4;
      else if (type === DESTINATION_PORT) this.destinationPort = at + 4;
    }
  }
}

/** One object is reused for every flow. */
export class FlowCursor implements FlowView {
  readonly #family: Family;
  readonly #addressLength: number;
  readonly #original = new TupleAt();
  readonly #reply = new TupleAt();
  #from: Buffer = Buffer.alloc(0);
  #id = 0;
  #zone = 0;
  #status = 0;
  #timeout = 0;
  #mark = 0;
  // Positions of attributes; 0 where there is none.
  #stateAt = 0;
  #originalCountersAt = 0;
  #replyCountersAt = 0;
  #timestampAt = 0;

  constructor(family: Family) {
    this.#family = family;
    this.#addressLength = family === "ipv4" ? 4 : 16;
  }

  /** False when the message does not hold a flow with addresses in both directions. */
  read(from: Buffer, start: number, end: number): boolean {
    this.#from = from;
    this.#id = this.#zone = this.#status = this.#timeout = this.#mark = 0;
    this.#stateAt = this.#originalCountersAt = this.#replyCountersAt = this.#timestampAt = 0;
    this.#original.source = this.#reply.source = 0;
    for (let at = start; at + 4 <= end; at = nextAttribute(from, at)) this.#note(attributeType(from, at), at);
    return this.#original.source !== 0 && this.#reply.source !== 0;
  }

  #note(type: number, at: number): void {
    const from = this.#from;
    if (type === ORIGINAL) this.#original.find(from, at + 4, attributeEnd(from, at));
    else if (type === REPLY) this.#reply.find(from, at + 4, attributeEnd(from, at));
    else if (type === ID) this.#id = from.readUInt32BE(at + 4);
    else if (type === ZONE) this.#zone = from.readUInt16BE(at + 4);
    else if (type === STATUS) this.#status = from.readUInt32BE(at + 4);
    else if (type === TIMEOUT) this.#timeout = from.readUInt32BE(at + 4);
    else if (type === MARK) this.#mark = from.readUInt32BE(at + 4);
    else if (type === PROTOCOL_STATE) this.#stateAt = at;
    else if (type === ORIGINAL_COUNTERS) this.#originalCountersAt = at;
    else if (type === REPLY_COUNTERS) this.#replyCountersAt = at;
    else if (type === TIMESTAMP) this.#timestampAt = at;
  }

  get family(): Family {
    return this.#family;
  }

  get status(): number {
    return this.#status;
  }

  get timeout(): number {
    return this.#timeout;
  }

  get mark(): number {
    return this.#mark;
  }

  get zone(): number {
    return this.#zone;
  }

  get id(): number {
    return this.#id;
  }

  get state(): FlowState | null {
    const outer = this.#stateAt + 4;
    if (this.#stateAt === 0 || outer + 4 > attributeEnd(this.#from, this.#stateAt)) return null;
    const inner = attributeAt(this.#from, outer + 4, attributeEnd(this.#from, outer), PROTOCOL_STATE_NUMBER);
    if (inner === 0) return null;
    const states = statesOf[attributeType(this.#from, outer)];
    return states?.[this.#from.readUInt8(inner + 4)] ?? null;
  }

  get counters(): { readonly original: Counters; readonly reply: Counters } | null {
    if (this.#originalCountersAt === 0 || this.#replyCountersAt === 0) return null;
    return {
      original: countersAt(this.#from, this.#originalCountersAt),
      reply: countersAt(this.#from, this.#replyCountersAt),
    };
  }

  get startedAt(): number | null {
    const at = this.#timestampAt;
    if (at === 0) return null;
    const start = attributeAt(this.#from, at + 4, attributeEnd(this.#from, at), TIMESTAMP_START);
    return start === 0 ? null : Number(this.#from.readBigUInt64BE(start + 4) / 1_000_000n);
  }

  get protocol(): number {
    const at = this.#original.protocol;
    return at === 0 ? 0 : this.#from.readUInt8(at);
  }

  get source(): Address {
    return this.#address(this.#original.source);
  }

  get sourcePort(): number {
    return this.#port(this.#original.sourcePort);
  }

  get destinationPort(): number {
    return this.#port(this.#original.destinationPort);
  }

  get destination(): Address {
    return this.#address(this.#original.destination);
  }

  get replySource(): Address {
    return this.#address(this.#reply.source);
  }

  get replySourcePort(): number {
    return this.#port(this.#reply.sourcePort);
  }

  get replyDestination(): Address {
    return this.#address(this.#reply.destination);
  }

  get replyDestinationPort(): number {
    return this.#port(this.#reply.destinationPort);
  }

  /** A copy to keep. */
  flow(): Flow {
    return {
      family: this.#family,
      protocol: this.protocol,
      original: this.#tuple(this.#original),
      reply: this.#tuple(this.#reply),
      status: this.#status,
      state: this.state,
      timeout: this.#timeout,
      mark: this.#mark,
      zone: this.#zone,
      id: this.#id,
      counters: this.counters,
      startedAt: this.startedAt,
    };
  }

  #tuple({ source, destination, sourcePort, destinationPort }: TupleAt): Tuple {
    return {
      source: this.#address(source),
      destination: this.#address(destination),
      sourcePort: this.#port(sourcePort),
      destinationPort: this.#port(destinationPort),
    };
  }

  #port(at: number): number {
    return at === 0 ? 0 : this.#from.readUInt16BE(at);
  }

  #address(at: number): Address {
    return formatAddress(this.#from.subarray(at, at + this.#addressLength));
  }
}

const PROTOCOL_STATE_NUMBER = 1;
const TIMESTAMP_START = 1;
const PACKETS = 1;
const BYTES = 2;
/** By the type of the attribute inside PROTOCOL_STATE. */
const statesOf: Readonly<Record<number, readonly FlowState[]>> = { 1: tcpStates, 3: sctpStates };

/** Position of the first attribute of a type; 0 when there is none. */
function attributeAt(from: Buffer, start: number, end: number, type: number): number {
  for (let at = start; at + 4 <= end; at = nextAttribute(from, at))
    if (attributeType(from, at) === type) return at;
  return 0;
}

function countersAt(from: Buffer, at: number): Counters {
  const [start, end] = [at + 4, attributeEnd(from, at)];
  const valueAt = (type: number) => {
    const found = attributeAt(from, start, end, type);
    return found === 0 ? 0 : Number(from.readBigUInt64BE(found + 4));
  };
  return { packets: valueAt(PACKETS), bytes: valueAt(BYTES) };
}

/**
 * Writes what names a flow: its reply tuple, its zone, and its id. The id is a hash of the original tuple and the flow's place in
 * memory, which a later flow may take over: only together with the reply tuple does it name this flow and no other.
 */
export function writeFlow(
  out: Writer,
  { family, protocol, reply, zone, id }: Pick<Flow, "family" | "protocol" | "reply" | "zone" | "id">,
): void {
  const tuple = out.nest(REPLY);
  const addresses = out.nest(IP);
  const first = family === "ipv4" ? 1 : 3;
  for (const [index, address] of [reply.source, reply.destination].entries()) {
    const at = out.begin(first + index);
    out.append(addressBytes(address)!);
    out.end(at);
  }
  out.end(addresses);
  const ports = out.nest(PROTO);
  writeProtocol(out, protocol);
  for (const [index, port] of [reply.sourcePort, reply.destinationPort].entries()) {
    const at = out.begin(SOURCE_PORT + index);
    out.u16be(port);
    out.end(at);
  }
  out.end(ports);
  out.end(tuple);
  if (zone !== 0) {
    const at = out.begin(ZONE);
    out.u16be(zone);
    out.end(at);
  }
  const at = out.begin(ID);
  out.u32be(id);
  out.end(at);
}

/** Writes a filter that lets only these flows of one IP protocol through; kernels before 5.8 pass it over. */
export function writeFilter(out: Writer, protocol: number, part: FlowPart | null): void {
  const isReply = part?.kind === "answered by";
  const tuple = out.nest(isReply ? REPLY : ORIGINAL);
  if (part !== null && part.address !== null) {
    const addresses = out.nest(IP);
    const at = out.begin(isReply ? IPV4_SOURCE : IPV4_DESTINATION);
    out.append(addressBytes(part.address)!);
    out.end(at);
    out.end(addresses);
  }
  const ports = out.nest(PROTO);
  writeProtocol(out, protocol);
  if (part !== null) {
    const at = out.begin(isReply ? SOURCE_PORT : DESTINATION_PORT);
    out.u16be(part.port);
    out.end(at);
  }
  out.end(ports);
  out.end(tuple);
  const filter = out.nest(FILTER);
  for (const direction of [FILTER_ORIGINAL, FILTER_REPLY]) {
    const flags = out.begin(direction);
    out.u32((direction === FILTER_REPLY) === isReply ? filterFlags(part) : 0);
    out.end(flags);
  }
  out.end(filter);
}

/** What is compared: the protocol, and the port and the address of one side. */
function filterFlags(part: FlowPart | null): number {
  if (part === null) return FILTER_PROTOCOL;
  const [address, port] =
    part.kind === "answered by"
      ? [FILTER_SOURCE, FILTER_SOURCE_PORT]
      : [FILTER_DESTINATION, FILTER_DESTINATION_PORT];
  return FILTER_PROTOCOL | port | (part.address === null ? 0 : address);
}

const FILTER = 25;
const FILTER_ORIGINAL = 1;
const FILTER_REPLY = 2;
const FILTER_SOURCE = 1;
const FILTER_DESTINATION = 2;
const FILTER_PROTOCOL = 8;
const FILTER_SOURCE_PORT = 16;
const FILTER_DESTINATION_PORT = 32;

function writeProtocol(out: Writer, protocol: number): void {
  const at = out.begin(PROTO_NUMBER);
  out.u8(protocol);
  out.end(at);
}
