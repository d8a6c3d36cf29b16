// The elements of nf_tables sets and maps. There may be a million, so they are written and read without the field tables.
import { atOnce, type Steps } from "../../model/steps.ts";
import { HostError } from "../error.ts";
import { attributeEnd, attributeType, nextAttribute } from "./attributes.ts";
import type { Bytes } from "./bytes.ts";
import { type Datum, datum } from "./datum.ts";
import { expression } from "./expressions.ts";
import type { Writer } from "./writer.ts";

export type Element = {
  /** Fields padded to four bytes each; empty for the element that catches everything. */
  readonly key: Bytes;
  /** Written after the key as four more bytes in host byte order; when read, part of the key. */
  readonly slot?: number;
  /** Last key of a range, in sets of concatenated ranges. */
  readonly keyEnd?: Bytes;
  readonly data?: Datum;
  /** `elementFlag`; absent is 0. */
  readonly flags?: number;
  /** Its timeout in milliseconds; absent: the set's timeout. */
  readonly timeout?: number;
  /** The remaining time in milliseconds. */
  readonly expires?: number;
  /** What `nft` keeps beside it: see `userdata.ts`. */
  readonly userdata?: Bytes;
  /** What its counter has counted, when read; absent: it has none. */
  readonly packets?: number;
};

export const elementFlag = { intervalEnd: 1, catchAll: 2 } as const;

/** An attribute holds 64 KiB at most, and no element takes more than one. */
export const elementListLimit = 0xffff - 1024;

const KEY = 1;
const DATA = 2;
const FLAGS = 3;
const TIMEOUT = 4;
const EXPIRATION = 5;
const USERDATA = 6;
const EXPRESSION = 7;
const KEY_END = 10;
const LIST_ITEM = 1;
const VALUE = 1;

export function writeElement(out: Writer, element: Element): void {
  const item = out.nest(LIST_ITEM);
  if (element.slot !== undefined) writeSlotKey(out, element.key, element.slot);
  else if (element.key !== "") writeKey(out, KEY, element.key);
  if (element.keyEnd !== undefined) writeKey(out, KEY_END, element.keyEnd);
  if (element.data !== undefined) writeData(out, element.data);
  if (element.flags !== undefined) {
    const at = out.begin(FLAGS);
    out.u32be(element.flags);
    out.end(at);
  }
  if (element.timeout !== undefined) writeTime(out, TIMEOUT, element.timeout);
  if (element.expires !== undefined) writeTime(out, EXPIRATION, element.expires);
  if (element.userdata !== undefined) {
    const at = out.begin(USERDATA);
    out.raw(element.userdata);
    out.end(at);
  }
  out.end(item);
}

/** The elements of a set. Throws DuplicateElement when the dump does not contain each of them exactly once. */
export type Elements = {
  all(): readonly Element[];
  /** Those that `matches` does not; it is called only for elements with a key. */
  except(matches: Matches): Steps<readonly Element[]>;
};

/** Whether an element is known already, by the bytes of its key and of its attributes after the key, which are from `rest` to `end`. */
export type Matches = (bytes: Buffer, key: number, keyEnd: number, rest: number, end: number) => boolean;

/** In the order of the dump, in one list after the other: an element that matches need not be read. */
export function dumpedElements(lists: readonly Buffer[]): Elements {
  function* except(matches: Matches): Steps<readonly Element[]> {
    const others: Element[] = [];
    for (const [i, list] of lists.entries()) {
      readOthers(list, matches, others);
      if (i % listsInStep === listsInStep - 1) yield;
    }
    return eachOnce(others);
  }
  return { all: () => atOnce(except(() => false)), except };
}

/** A datagram has one list of up to 32 KiB. */
const listsInStep = 8;

function readOthers(list: Buffer, matches: Matches, others: Element[]): void {
  for (let at = 0; at + 4 <= list.length; at = nextAttribute(list, at)) {
    const end = attributeEnd(list, at);
    if (!isMatched(list, at + 4, end, matches)) others.push(readElement(list, at + 4, end));
  }
}

/** The kernel may resize a set during the dump: then some elements appear twice, and others are missing. */
export class DuplicateElement extends HostError {
  constructor() {
    super("interrupted", "Cannot read elements: the kernel rearranged them", { errno: "EINTR" });
  }
}

function eachOnce(elements: readonly Element[]): readonly Element[] {
  const seen = new Set<string>();
  for (const { key, keyEnd, flags } of elements)
    seen.add(keyEnd === undefined && flags === undefined ? key : `${key}${keyEnd} ${flags}`);
  if (seen.size !== elements.length) throw new DuplicateElement();
  return elements;
}

/** The kernel sends the key first. */
function isMatched(from: Buffer, start: number, end: number, matches: Matches): boolean {
  if (start + 8 > end || attributeType(from, start) !== KEY) return false;
  const key = start + 4;
  return matches(from, key + 4, attributeEnd(from, key), nextAttribute(from, start), end);
}

/** Where the value of an element begins that has only a value of this many bytes after its key; -1: there is something else. */
export function valueAt(from: Buffer, rest: number, end: number, length: number): number {
  if (rest + 8 + length > end || attributeType(from, rest) !== DATA) return -1;
  // Beside it there may be a counter, whose value does not count.
  const counter = nextAttribute(from, rest);
  if (counter < end && (attributeType(from, counter) !== EXPRESSION || nextAttribute(from, counter) < end))
    return -1;
  const value = rest + 4;
  if (attributeType(from, value) !== VALUE || attributeEnd(from, value) - value - 4 !== length) return -1;
  return value + 4;
}

function writeKey(out: Writer, type: number, key: Bytes): void {
  const nest = out.nest(type);
  const value = out.begin(VALUE);
  out.raw(key);
  out.end(value);
  out.end(nest);
}

function writeSlotKey(out: Writer, key: Bytes, slot: number): void {
  const nest = out.nest(KEY);
  const value = out.begin(VALUE);
  out.raw(key);
  out.u32(slot);
  out.end(value);
  out.end(nest);
}

function writeData(out: Writer, data: Datum): void {
  if (typeof data === "string") {
    writeKey(out, DATA, data);
    return;
  }
  const nest = out.nest(DATA);
  datum.write(out, data);
  out.end(nest);
}

function writeTime(out: Writer, type: number, milliseconds: number): void {
  const at = out.begin(type);
  out.u64be(BigInt(milliseconds));
  out.end(at);
}

/** The element with these attributes; without that of the key, its key is empty. */
export function readElement(from: Buffer, start: number, end: number): Element {
  const element: { -readonly [K in keyof Element]: Element[K] } = { key: "" };
  for (let at = start; at + 4 <= end; at = nextAttribute(from, at)) {
    const value = at + 4;
    const valueEnd = attributeEnd(from, at);
    switch (attributeType(from, at)) {
      case KEY:
        element.key = readValue(from, value);
        break;
      case KEY_END:
        element.keyEnd = readValue(from, value);
        break;
      case DATA: {
        const data =
          attributeType(from, value) === VALUE ? readValue(from, value) : datum.read(from, value, valueEnd);
        if (data !== undefined) element.data = data;
        break;
      }
      case FLAGS:
        element.flags = from.readUInt32BE(value);
        break;
      case TIMEOUT:
        element.timeout = Number(from.readBigUInt64BE(value));
        break;
      case EXPIRATION:
        element.expires = Number(from.readBigUInt64BE(value));
        break;
      case EXPRESSION: {
        const found = expression.read(from, value, valueEnd);
        if (found?.kind === "counter") element.packets = Number(found.packets);
        break;
      }
      case USERDATA:
        element.userdata = from.toString("latin1", value, valueEnd);
        break;
    }
  }
  return element;
}

function readValue(from: Buffer, at: number): Bytes {
  return from.toString("latin1", at + 4, attributeEnd(from, at));
}
