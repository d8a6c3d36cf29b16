// Elements of the Plan as kernel bytes and back: keys are text in the Plan, packed fields in the kernel.
import { type Address, addressBytes, formatAddress, ipv4Number } from "../../model/address.ts";
import type { Steps } from "../../model/steps.ts";
import type { Item } from "../../plan/nftables/diff.ts";
import {
  catchAllKey,
  type ElementKey,
  elementId,
  joinKey,
  rangeKey,
  rangeOf,
  splitKey,
} from "../../plan/nftables/key.ts";
import type {
  Backend,
  BackendSlots,
  Client,
  Element,
  NftSet,
  Part,
  Verdict,
} from "../../plan/nftables/types.ts";
import { isSlotMap } from "../../plan/nftables/types.ts";
import {
  addressOf,
  addressText,
  type Bytes,
  hostU32Bytes,
  hostU32Of,
  u8Bytes,
  u16Bytes,
} from "../netlink/bytes.ts";
import { elementFlag, type Element as KernelElement } from "../netlink/elements.ts";
import { commentOf, commentUserdata } from "../netlink/userdata.ts";
import { protocolNumbers } from "./expressions.ts";

/** The kernel elements of Items: one each, or two where a range needs its end. */
export function* encodeItems(set: NftSet, items: readonly Item[]): Generator<KernelElement> {
  if (isSlotMap(set)) {
    yield* encodeSlots(set, items);
    return;
  }
  for (const item of items) {
    if (set.interval) yield* encodeRange(item);
    else yield encodeItem(set, item);
  }
}

/** As it is deleted: without data. */
const catchAll: KernelElement = { key: "", flags: elementFlag.catchAll };

/** There may be a million: all slots of one key are adjacent, and the yielded object is always the same one. */
function* encodeSlots(set: NftSet, items: readonly Item[]): Generator<KernelElement> {
  const element = { key: "", slot: 0, data: "" };
  let text = "";
  for (const { key, slot, data } of items) {
    if (key === catchAllKey) {
      yield catchAll;
      continue;
    }
    if (key !== text) {
      text = key;
      element.key = encodeKey(set, key);
    }
    element.slot = slot!;
    element.data = backendBytes(data as Backend);
    yield element;
  }
}

/** All slots of these keys; the yielded object is always the same one. */
export function* encodeSpreads(set: NftSet, spreads: readonly BackendSlots[]): Generator<KernelElement> {
  const element = { key: "", slot: 0, data: "" };
  for (const { key, backends } of spreads) {
    element.key = encodeKey(set, key);
    for (let slot = 0; slot < backends.length; slot++) {
      element.slot = slot;
      element.data = backendBytes(backends[slot]!);
      yield element;
    }
  }
}

/** The key for a request of one element; not for sets of ranges. */
export function encodeQuestion(set: NftSet, key: ElementKey, slot: number | null): KernelElement {
  if (slot !== null) return { key: encodeKey(set, key), slot };
  return encodeItem(set, { key, slot, data: null, comment: null });
}

/** The contents of a dumped set in the Plan's types. */
export function* decodeElements(
  set: NftSet,
  elements: readonly KernelElement[],
): Steps<Map<string, Element>> {
  const decoded = new Map<string, Element>();
  if (set.interval) {
    for (const element of decodeRanges(elements)) decoded.set(element.key, element);
    return decoded;
  }
  for (const element of elements) {
    const one = decodeElement(set, element);
    decoded.set(one.key, one);
    if (decoded.size % elementsInStep === 0) yield;
  }
  return decoded;
}

/** About as many as are decoded in 5 ms. */
const elementsInStep = 2000;

/** No client is kept for longer than the set's current timeout. */
export function* encodeClients({ timeout }: NftSet, clients: readonly Client[]): Generator<KernelElement> {
  for (const { address, milliseconds } of clients) {
    yield { key: addressText(address), expires: Math.min(milliseconds, timeout! * 1000) };
  }
}

export function decodeClients(elements: readonly KernelElement[]): Client[] {
  return elements.flatMap(({ key, expires = 0 }) =>
    expires > 0 ? [{ address: addressOf(key), milliseconds: expires }] : [],
  );
}

function encodeItem(set: NftSet, item: Item): KernelElement {
  if (item.key === catchAllKey) return catchAll;
  return {
    key: encodeElementKey(set, item.key),
    ...(item.data === null ? {} : { data: item.data as Verdict }),
    ...(item.comment === null ? {} : { userdata: commentUserdata(item.comment) }),
  };
}

/** The key of an element of a set that is no slot map. */
export function encodeElementKey(set: NftSet, key: ElementKey): Bytes {
  const bytes = encodeKey(set, key);
  return set.key.length === 1 ? unpadded(bytes, set.key[0]!) : bytes;
}

export function encodeKey(set: NftSet, key: ElementKey): Bytes {
  const parts = splitKey(key);
  let bytes: Bytes = "";
  for (let i = 0; i < parts.length; i++) bytes += encodePart(set.key[i]!, parts[i]!);
  return bytes;
}

/** Parts of a concatenation are padded to four bytes; the value of a set with one part is not. */
function unpadded(key: Bytes, part: Part): Bytes {
  return part === "protocol" ? key.slice(0, 1) : part === "port" ? key.slice(0, 2) : key;
}

function encodePart(part: Part, text: string): Bytes {
  switch (part) {
    case "address":
      return addressText(text);
    case "protocol":
      // Another program may use a protocol that has no name here: its text is the number.
      return `${u8Bytes(protocolNumbers[text as keyof typeof protocolNumbers] ?? Number(text))}\0\0\0`;
    case "port":
      return `${u16Bytes(Number(text))}\0\0`;
    case "slot":
      return hostU32Bytes(Number(text));
  }
}

/** An address and a port, each filled up to whole registers. */
export function backendBytes({ address, port }: Backend): Bytes {
  const [ipv4, high, low] = [ipv4Number(address), port >> 8, port & 255];
  if (ipv4 < 0) return String.fromCharCode(...addressBytes(address)!, high, low, 0, 0);
  const [a, b, c, d] = [ipv4 >>> 24, (ipv4 >>> 16) & 255, (ipv4 >>> 8) & 255, ipv4 & 255];
  return String.fromCharCode(a, b, c, d, high, low, 0, 0);
}

/** Writes what `backendBytes` returns. */
export function writeBackend(into: Buffer, at: number, backend: Backend): void {
  const ipv4 = ipv4Number(backend.address);
  if (ipv4 < 0) {
    into.write(backendBytes(backend), at, "latin1");
    return;
  }
  into[at] = ipv4 >>> 24;
  into[at + 1] = ipv4 >>> 16;
  into[at + 2] = ipv4 >>> 8;
  into[at + 3] = ipv4;
  into[at + 4] = backend.port >> 8;
  into[at + 5] = backend.port;
}

function decodeElement(set: NftSet, { key, data, userdata }: KernelElement): Element {
  return {
    key: key === "" ? catchAllKey : decodeKey(set.key, key),
    data: typeof data === "object" ? data : null,
    comment: commentOf(userdata),
  };
}

/** What elements have counted, by `elementId`. */
export function* decodePackets(
  set: NftSet,
  elements: readonly KernelElement[],
): Generator<readonly [string, number]> {
  for (const { key, packets } of elements)
    if (packets !== undefined) yield [elementId(set.name, decodeKey(set.key, key)), packets];
}

function decodeKey(parts: readonly Part[], key: Bytes): ElementKey {
  let at = 0;
  const texts = parts.map((part) => {
    const length = part === "address" ? addressLength(parts, key) : 4;
    const bytes = key.slice(at, at + length);
    at += length;
    return decodePart(part, bytes);
  });
  return joinKey(texts);
}

/** All addresses of a key have the same length: what the other parts leave. */
function addressLength(parts: readonly Part[], key: Bytes): number {
  const addresses = parts.filter((part) => part === "address").length;
  return (key.length - 4 * (parts.length - addresses)) / addresses;
}

function decodePart(part: Part, bytes: Bytes): string {
  switch (part) {
    case "address":
      return addressOf(bytes);
    case "protocol":
      return protocolNames.get(bytes.charCodeAt(0)) ?? String(bytes.charCodeAt(0));
    case "port":
      return String((bytes.charCodeAt(0) << 8) | bytes.charCodeAt(1));
    case "slot":
      return String(hostU32Of(bytes));
  }
}

const protocolNames = new Map<number, string>(
  Object.entries(protocolNumbers).map(([name, number]) => [number, name]),
);

/** What a dumped slot map holds. */
export function decodeSlots(set: NftSet, elements: readonly KernelElement[]): Map<string, BackendSlots> {
  const byBytes = new Map<Bytes, { key: string; backends: (Backend | undefined)[] }>();
  const parts = set.key.slice(0, -1);
  for (const { key, data } of elements) {
    if (typeof data !== "string") continue;
    // The key of a single pool's slots is empty too.
    const bytes = key === "" ? catchAllKey : key.slice(0, -4);
    let slots = byBytes.get(bytes);
    if (slots === undefined) {
      slots = { key: key === "" ? catchAllKey : decodeKey(parts, bytes), backends: [] };
      byBytes.set(bytes, slots);
    }
    const address = addressOf(data.slice(0, -4));
    slots.backends[key === "" ? 0 : hostU32Of(key.slice(-4))] = {
      address,
      port: (data.charCodeAt(data.length - 4) << 8) | data.charCodeAt(data.length - 3),
    };
  }
  return new Map([...byBytes.values()].map((slots) => [slots.key, slots]));
}

/** Sets of plain networks contain the first address, and the address after the last one marked as an end. */
function* encodeRange({ key }: Item): Generator<KernelElement> {
  if (key === catchAllKey) {
    yield catchAll;
    return;
  }
  const { first, last } = rangeOf(key);
  yield { key: addressText(first) };
  const next = addressAfter(last);
  if (next !== null) yield { key: addressText(next), flags: elementFlag.intervalEnd };
}

function decodeRanges(elements: readonly KernelElement[]): Element[] {
  const isEnd = (element: KernelElement) => ((element.flags ?? 0) & elementFlag.intervalEnd) !== 0;
  const sorted = [...elements].sort((a, b) =>
    a.key < b.key ? -1 : a.key > b.key ? 1 : Number(isEnd(b)) - Number(isEnd(a)),
  );
  const found: Element[] = [];
  for (const [i, element] of sorted.entries()) {
    if (isEnd(element)) continue;
    if (element.key === "") {
      found.push({ key: catchAllKey, data: null, comment: null });
      continue;
    }
    const next = sorted[i + 1];
    const last = next === undefined ? "\xff".repeat(element.key.length) : bytesBefore(next.key);
    found.push({ key: rangeKey(addressOf(element.key), addressOf(last)), data: null, comment: null });
  }
  return found;
}

function addressAfter(address: Address): Address | null {
  const bytes = addressBytes(address)!;
  for (let i = bytes.length - 1; i >= 0; i--) {
    bytes[i] = (bytes[i]! + 1) & 255;
    if (bytes[i] !== 0) return formatAddress(bytes);
  }
  return null;
}

function bytesBefore(key: Bytes): Bytes {
  const bytes = Buffer.from(key, "latin1");
  for (let i = bytes.length - 1; i >= 0; i--) {
    bytes[i] = (bytes[i]! - 1) & 255;
    if (bytes[i] !== 255) break;
  }
  return bytes.toString("latin1");
}
