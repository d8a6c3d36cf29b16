// Reads nf_tables back: each kind of object by itself, or whole tables at one generation.
import { setTimeout as sleep } from "node:timers/promises";
import { HostError } from "../error.ts";
import { attributeEnd, attributeType, type Codec, nextAttribute } from "./attributes.ts";
import { collect } from "./dump.ts";
import { type Element, readElements, writeElement } from "./elements.ts";
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
import { ask, type NetlinkSocket, type Place, withSocket } from "./socket.ts";
import { Writer } from "./writer.ts";

/** A table with everything in it. Rules are in their order, elements in none. */
export type TableContents = {
  readonly table: Table;
  readonly chains: readonly Chain[];
  readonly rules: readonly Rule[];
  readonly sets: readonly NftSet[];
  readonly elements: ReadonlyMap<string, readonly Element[]>;
  readonly counters: readonly Counter[];
};

const attempts = 10;

/** The table as it was at one moment, with the generation of that moment; null contents when there is no such table. */
export async function readTable(
  family: NfFamily,
  name: string,
  place: Place = {},
  signal?: AbortSignal,
): Promise<{ readonly contents: TableContents | null; readonly generation: number }> {
  const which = { family, name, place, signal };
  const { read, generation } = await atOneMoment(
    which,
    () => true,
    (contents) => Promise.resolve(contents),
  );
  return { contents: read, generation };
}

type Which = {
  readonly family: NfFamily;
  readonly name: string;
  readonly place: Place;
  readonly signal: AbortSignal | undefined;
};

/** A table, with the elements of some sets, and what `more` makes of it before anything changes. */
export async function atOneMoment<T>(
  { family, name, place, signal }: Which,
  isRead: (set: NftSet) => boolean,
  more: (contents: TableContents) => Promise<T>,
): Promise<{ readonly read: T | null; readonly generation: number }> {
  for (let attempt = 0; attempt < attempts; attempt++) {
    const before = await readGeneration(place, signal);
    const read = await unlessGone(async () => {
      const contents = await contentsOf(family, name, place, signal, isRead);
      return contents === null ? null : await more(contents);
    });
    const after = await readGeneration(place, signal);
    if (before.id === after.id && read !== undefined) return { read, generation: after.id };
  }
  throw new HostError(
    "interrupted",
    `Cannot read table ${family} ${name}: it changed in ${attempts} attempts`,
    {
      errno: "EINTR",
    },
  );
}

/** Undefined when something was deleted between two dumps: the generation has moved on as well. */
async function unlessGone<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof HostError && error.errno === "ENOENT") return undefined;
    throw error;
  }
}

export async function readGeneration(place: Place = {}, signal?: AbortSignal): Promise<Generation> {
  let generation: Generation | undefined;
  await withSocket("netfilter", place, (socket) =>
    ask(
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

export async function readSetElements(
  family: NfFamily,
  table: string,
  set: string,
  place: Place = {},
  signal?: AbortSignal,
): Promise<Element[]> {
  const request = getRequest("getElements", flag.dump, family, codecs.elements, { table, set });
  const what = `read elements of ${set}`;
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const lists = await collect("netfilter", what, request, elementsIn, place, signal);
    const elements = lists.flat();
    if (isEachOnce(elements)) return elements;
    await sleep(attempt * 10, undefined, { signal });
  }
  throw new HostError("interrupted", `Cannot ${what}: the kernel rearranged it in ${attempts} attempts`, {
    errno: "EINTR",
  });
}

/** Of a set that has just grown, the kernel moves elements to a larger table meanwhile: a dump then tells some twice, and others not at all. */
function isEachOnce(elements: readonly Element[]): boolean {
  const seen = new Set<string>();
  for (const { key, keyEnd, flags } of elements)
    seen.add(keyEnd === undefined && flags === undefined ? key : `${key}${keyEnd} ${flags}`);
  return seen.size === elements.length;
}

/** The element with this key; null when there is none. Not for sets of ranges. */
export async function readOneElement(
  socket: NetlinkSocket,
  family: NfFamily,
  { table, set, element }: { readonly table: string; readonly set: string; readonly element: Element },
  signal?: AbortSignal,
): Promise<Element | null> {
  const out = new Writer(512);
  const at = beginNetfilter(out, verbType("getElements"), flag.request | flag.acknowledge, 1, family);
  codecs.elements.write(out, { table, set });
  const list = out.nest(elementListAttribute);
  writeElement(out, element);
  out.end(list);
  endMessage(out, at);
  const found: Element[] = [];
  try {
    await ask(socket, `read an element of ${set}`, out.bytes(), signal, (from, message) => {
      found.push(...elementsIn(from, message));
    });
  } catch (error) {
    if (error instanceof HostError && error.errno === "ENOENT") return null;
    throw error;
  }
  return found[0] ?? null;
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
  const chains = (await readChains(family, place, signal)).filter((chain) => chain.table === name);
  const rules = await readRules(family, { table: name }, place, signal);
  const sets = await readSets(family, name, place, signal);
  const counters = await readCounters(family, name, place, signal);
  const elements = new Map<string, readonly Element[]>();
  for (const set of sets.filter(isRead))
    elements.set(set.name, await readSetElements(family, name, set.name, place, signal));
  return { table, chains, rules, sets, elements, counters };
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

function getRequest<T>(
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

function elementsIn(from: Buffer, { start, end }: Message): Element[] {
  const found: Element[] = [];
  for (let at = start + netfilterHeaderLength; at + 4 <= end; at = nextAttribute(from, at)) {
    if (attributeType(from, at) === elementListAttribute)
      readElements(from, at + 4, attributeEnd(from, at), found);
  }
  return found;
}
