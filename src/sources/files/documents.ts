// Reads the documents in the text of one file, with js-yaml or JSON.parse, and finds the line of each object.
import {
  CORE_SCHEMA,
  constructFromEvents,
  EVENT_ID,
  type Event,
  mergeTag,
  parseEvents,
  YAMLException,
} from "js-yaml";
import type { FieldPath } from "./check.ts";
import { expandedSize } from "./expanded-size.ts";
import { fieldLine, objectStarts } from "./places.ts";

/** Where an object is in its file: JSON.parse reports no lines, so an item of a JSON List has its index. */
export type Place = { readonly line: number } | { readonly item: number };

/** A document or an item of a List. `items`: those of a List; absent: they have its place. */
export type Located = {
  readonly value: unknown;
  readonly place: Place;
  /** From the number of the document on. */
  readonly path: FieldPath;
  readonly items?: readonly Located[];
};

export type Documents = {
  readonly roots: readonly Located[];
  /** The line of a field, or of the nearest one around it. */
  readonly lineOf: (path: FieldPath) => number;
};

export type Flaw = { readonly line: number; readonly message: string };

/** As kubectl reads manifests: YAML 1.2 scalars, and merge keys. */
const schema = CORE_SCHEMA.withTags(mergeTag);
/** A manifest written by hand has a few aliases; more are an attempt to exhaust memory. */
const maxAliases = 1_000;
const maxExpandedNodes = 1_000_000;

/** The documents that are not empty, or what is wrong with the text as a whole. */
export function readDocuments(text: string): Documents | Flaw {
  return readJson(text) ?? readYaml(text);
}

/** Null when it is not JSON; the YAML parser then reads it, or reports the line of the error. */
function readJson(text: string): Documents | null {
  const start = text.search(/\S/);
  if (text[start] !== "{") return null;
  try {
    const root = located(JSON.parse(text), 0, { line: lineAt(text, start) }, (item) => ({ item }));
    return { roots: [root], lineOf: linesInJson(text) };
  } catch {
    return null;
  }
}

/** JSON is YAML: it is parsed again when the first line is needed. */
function linesInJson(text: string): Documents["lineOf"] {
  let events: readonly Event[] | null = null;
  return (path) => {
    try {
      events ??= parseEvents(text, {});
      return fieldLine(text, events, path);
    } catch {
      return 1;
    }
  };
}

function readYaml(text: string): Documents | Flaw {
  try {
    const events = parseEvents(text, {});
    const values = constructFromEvents(events, { source: text, schema, maxAliases });
    const hasAliases = events.some(({ type }) => type === EVENT_ID.ALIAS);
    if (hasAliases && expandedSize(values, maxExpandedNodes) > maxExpandedNodes)
      return { line: lineOfFirstAlias(text, events), message: "its aliases expand to too many values" };
    const starts = objectStarts(text, events);
    const roots = values.flatMap((value, i) => {
      if (value === null || value === undefined) return [];
      const { line, items } = starts[i]!;
      return [located(detached(value), i, { line }, (item) => ({ line: items[item] ?? line }))];
    });
    return { roots, lineOf: (path) => fieldLine(text, events, path) };
  } catch (error) {
    return flawOf(error);
  }
}

function located(value: unknown, document: number, place: Place, placeOf: (item: number) => Place): Located {
  const items = (value as { readonly items?: unknown } | null)?.items;
  const root = { value, place, path: [document] };
  if (!Array.isArray(items)) return root;
  const found = items.map((item: unknown, i) => ({
    value: item,
    place: placeOf(i),
    path: [document, "items", i],
  }));
  return { ...root, items: found };
}

/** js-yaml's strings are slices, each of which keeps the whole text in memory for as long as the daemon holds it. */
function detached(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function flawOf(error: unknown): Flaw {
  if (error instanceof YAMLException) return { line: (error.mark?.line ?? 0) + 1, message: error.reason };
  // js-yaml's documentation says to catch every exception, not only its own.
  return { line: 1, message: (error as Error).message };
}

function lineOfFirstAlias(text: string, events: readonly Event[]): number {
  const alias = events.find((event) => event.type === EVENT_ID.ALIAS);
  return lineAt(text, alias?.anchorStart ?? 0);
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
