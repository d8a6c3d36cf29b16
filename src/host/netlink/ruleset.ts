// Reads nf_tables back: each kind of object by itself, or whole tables at one generation.
import { setTimeout as sleep } from "node:timers/promises";
import { mapConcurrently } from "../../model/map-concurrently.ts";
import { HostError } from "../error.ts";
import { attributeEnd, attributeType, type Codec, nextAttribute } from "./attributes.ts";
import { collect } from "./dump.ts";
import { DuplicateElement, dumpedElements, type Element, type Elements, writeElement } from "./elements.ts";
import { endMessage, flag, type Message } from "./message.ts";
import { beginNetfilter, type NfFamily, netfilterHeaderLength } from "./netfilter.ts";
import {
  type Chain,
  type Counter,
  codecs,
  counterObject,
  elementListAttribute,
  type Generation,
  type NftSet,
  type Rule,
  readObject,
  type Table,
  type Verb,
  verbType,
} from "./nftables.ts";
import { type NetlinkSocket, type Place, sendRequest, withSocket } from "./socket.ts";
import { Writer } from "./writer.ts";

/** A table with everything in it. Rules are in their order, elements in none. */
export type TableContents = {
  readonly table: Table;
  readonly chains: readonly Chain[];
  readonly rules: readonly Rule[];
  readonly sets: readonly NftSet[];
  readonly elements: ReadonlyMap<string, Elements>;
  readonly counters: readonly Counter[];
};

const attempts = 10;

export type Which = {
  readonly family: NfFamily;
  readonly name: string;
  readonly place: Place;
  readonly signal?: AbortSignal | undefined;
};

/**
 * What `make` makes of a table as it was at one moment, with the elements of some sets; null when there is no such table. It is
 * done again when anything changed before it was made.
 */
export async function readTable<T>(
  { family, name, place, signal }: Which,
  isRead: (set: NftSet) => boolean,
  make: (contents: TableContents) => T | Promise<T>,
): Promise<T | null> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await sleep(attempt * 10, undefined, { signal });
    const before = await readGeneration(place, signal);
    const made = await unlessMoved(async () => {
      const contents = await contentsOf(family, name, place, signal, isRead);
      return contents === null ? null : await make(contents);
    });
    const after = await readGeneration(place, signal);
    if (before.id === after.id && made !== undefined) return made;
  }
  throw new HostError(
    "interrupted",
    `Cannot read table ${family} ${name}: it changed in ${attempts} attempts`,
    {
      errno: "EINTR",
    },
  );
}

/** Undefined when something was deleted between two dumps, which changes the generation, or was dumped twice. */
async function unlessMoved<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    const isGone = error instanceof HostError && error.errno === "ENOENT";
    if (isGone || error instanceof DuplicateElement) return undefined;
    throw error;
  }
}

export async function readGeneration(place: Place = {}, signal?: AbortSignal): Promise<Generation> {
  let generation: Generation | undefined;
  await withSocket("netfilter", place, (socket) =>
    sendRequest(
      socket,
      "read the nf_tables generation",
      getRequest("getGeneration", flag.acknowledge),
      signal,
      (from, message) => {
        generation ??= codecs.generation.read(from, message.start + netfilterHeaderLength, message.end);
      },
    ),
  );
  if (generation === undefined)
    throw new HostError("lost", "Cannot read the nf_tables generation: no answer");
  return generation;
}

export function readTables(place: Place = {}, signal?: AbortSignal): Promise<Table[]> {
  return dumpAll("tables", "getTable", codecs.table, null, {}, place, signal);
}

export function readChains(family: NfFamily, place: Place = {}, signal?: AbortSignal): Promise<Chain[]> {
  return dumpAll("chains", "getChain", codecs.chain, family, {}, place, signal);
}

/** In their order within each chain; without `chain`, of all chains. */
export async function readRules(
  family: NfFamily,
  at: { readonly table: string; readonly chain?: string },
  place: Place = {},
  signal?: AbortSignal,
): Promise<Rule[]> {
  const rules = await dumpAll("rules", "getRule", codecs.rule, family, at, place, signal);
  return rules.map(({ position: _position, ...rule }) => rule);
}

export function readSets(
  family: NfFamily,
  table: string,
  place: Place = {},
  signal?: AbortSignal,
): Promise<NftSet[]> {
  return dumpAll("sets", "getSet", codecs.set, family, { table }, place, signal);
}

export function readCounters(
  family: NfFamily,
  table: string,
  place: Place = {},
  signal?: AbortSignal,
): Promise<Counter[]> {
  return dumpAll(
    "counters",
    "getObject",
    codecs.counter,
    family,
    { table, type: counterObject },
    place,
    signal,
  );
}

/** Throws HostError with ENOENT when there is no such set. */
export async function readSetElements(
  family: NfFamily,
  table: string,
  set: string,
  place: Place,
  signal: AbortSignal | undefined,
): Promise<Elements> {
  const request = getRequest("getElements", flag.dump, family, codecs.elements, { table, set });
  const what = `read elements of ${set}`;
  const lists = await collect("netfilter", what, request, copiedLists, place, signal);
  return dumpedElements(lists.flat());
}

/** The element with this key; null when there is none. Not for sets of ranges. */
export async function readOneElement(
  socket: NetlinkSocket,
  family: NfFamily,
  { table, set, element }: { readonly table: string; readonly set: string; readonly element: Element },
  signal?: AbortSignal,
): Promise<Element | null> {
  const request = elementRequest(family, { table, set }, [element]);
  const found: Element[] = [];
  try {
    await sendRequest(socket, `read an element of ${set}`, request, signal, (from, message) => {
      found.push(...dumpedElements(copiedLists(from, message)).all());
    });
  } catch (error) {
    if (error instanceof HostError && error.errno === "ENOENT") return null;
    throw error;
  }
  return found[0] ?? null;
}

/** Requests these elements of a set by their keys. */
export function elementRequest(
  family: NfFamily,
  where: { readonly table: string; readonly set: string },
  elements: readonly Element[],
): Uint8Array {
  const out = new Writer(128 + 64 * elements.length);
  const at = beginNetfilter(out, verbType("getElements"), flag.request | flag.acknowledge, 1, family);
  codecs.elements.write(out, where);
  const list = out.nest(elementListAttribute);
  for (const element of elements) writeElement(out, element);
  out.end(list);
  endMessage(out, at);
  return out.bytes();
}

async function contentsOf(
  family: NfFamily,
  name: string,
  place: Place,
  signal: AbortSignal | undefined,
  isRead: (set: NftSet) => boolean,
): Promise<TableContents | null> {
  const table = (await readTables(place, signal)).find(
    (each) => each.family === family && each.name === name,
  );
  if (table === undefined) return null;
  const sets = await readSets(family, name, place, signal);
  // Side by side: a large set keeps the kernel busy for as long as all the rest takes. There may be thousands of sets, and each read is an open file.
  const elements = mapConcurrently(sets.filter(isRead), async (set): Promise<[string, Elements]> => {
    return [set.name, await readSetElements(family, name, set.name, place, signal)];
  });
  const [chains, rules, counters, read] = await Promise.all([
    readChains(family, place, signal),
    readRules(family, { table: name }, place, signal),
    readCounters(family, name, place, signal),
    elements,
  ]);
  return {
    table,
    chains: chains.filter((chain) => chain.table === name),
    rules,
    sets,
    elements: new Map(read),
    counters,
  };
}

function dumpAll<T>(
  what: string,
  verb: Verb,
  codec: Codec<T>,
  family: NfFamily | null,
  filter: Partial<T>,
  place: Place,
  signal: AbortSignal | undefined,
): Promise<(T & { readonly family: NfFamily })[]> {
  const request = getRequest(verb, flag.dump, family, codec, filter);
  return collect(
    "netfilter",
    `read ${what}`,
    request,
    (from, message) => readObject(codec, from, message),
    place,
    signal,
  );
}

export function getRequest<T>(
  verb: Verb,
  flags: number,
  family: NfFamily | null = null,
  codec?: Codec<T>,
  filter?: Partial<T>,
): Uint8Array {
  const out = new Writer(256);
  const at = beginNetfilter(out, verbType(verb), flag.request | flags, 1, family);
  codec?.write(out, filter as T);
  endMessage(out, at);
  return out.bytes();
}

/** The lists of elements in a message; its buffer is used again. */
export function copiedLists(from: Buffer, { start, end }: Message): Buffer[] {
  const found: Buffer[] = [];
  for (let at = start + netfilterHeaderLength; at + 4 <= end; at = nextAttribute(from, at)) {
    if (attributeType(from, at) === elementListAttribute)
      found.push(Buffer.from(from.subarray(at + 4, attributeEnd(from, at))));
  }
  return found;
}
