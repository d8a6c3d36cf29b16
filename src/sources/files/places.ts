// The lines of documents, of items of Lists and of single fields in a YAML text, from js-yaml's events.
import { EVENT_ID, type Event, getScalarValue } from "js-yaml";
import type { FieldPath } from "./check.ts";

/** Lines count from 1. `items`: of the sequence under the key `items`; empty without one. */
export type Start = { readonly line: number; readonly items: readonly number[] };

/** One for each document. */
export function objectStarts(text: string, events: readonly Event[]): readonly Start[] {
  const lines = new LineCounter(text);
  const starts: Start[] = [];
  for (let i = 0; i < events.length; ) {
    const end = endOf(events, i);
    // A document without contents has no node.
    const root = events[i + 1]!;
    starts.push({
      line: lines.at(offsetOf(root)),
      items: itemsOf(text, events, i + 1).map((at) => lines.at(at)),
    });
    i = end;
  }
  return starts;
}

/** The line of the field that is reached by these keys and indices, the first of which is that of the document. */
export function fieldLine(text: string, events: readonly Event[], [document, ...path]: FieldPath): number {
  let at = 0;
  for (let i = 0; i < Number(document); i++) at = endOf(events, at);
  at += 1;
  let offset = offsetOf(events[at]!);
  for (const part of path) {
    const key = typeof part === "number" ? childrenOf(events, at)[part] : keyIn(text, events, at, part);
    // In an alias, or merged from one.
    if (key === undefined) break;
    offset = offsetOf(events[key]!);
    at = typeof part === "number" ? key : endOf(events, key);
  }
  return new LineCounter(text).at(offset);
}

/** The offsets of the items of the root mapping. */
function itemsOf(text: string, events: readonly Event[], root: number): readonly number[] {
  const key = keyIn(text, events, root, "items");
  if (key === undefined) return [];
  return childrenOf(events, endOf(events, key)).map((i) => offsetOf(events[i]!));
}

/** The index of a key in a mapping. */
function keyIn(text: string, events: readonly Event[], mapping: number, wanted: string): number | undefined {
  if (events[mapping]?.type !== EVENT_ID.MAPPING) return undefined;
  for (let key = mapping + 1; events[key]!.type !== EVENT_ID.POP; key = endOf(events, endOf(events, key)))
    if (isText(text, events[key]!, wanted)) return key;
  return undefined;
}

/** The indices of a sequence's items. */
function childrenOf(events: readonly Event[], sequence: number): readonly number[] {
  const children: number[] = [];
  if (events[sequence]!.type !== EVENT_ID.SEQUENCE) return children;
  for (let i = sequence + 1; events[i]!.type !== EVENT_ID.POP; i = endOf(events, i)) children.push(i);
  return children;
}

/** The index after the node that starts at this one. */
function endOf(events: readonly Event[], start: number): number {
  let depth = 0;
  for (let i = start; i < events.length; i++) {
    const { type } = events[i]!;
    if (type === EVENT_ID.POP) depth--;
    else if (type !== EVENT_ID.SCALAR && type !== EVENT_ID.ALIAS) depth++;
    if (depth === 0) return i + 1;
  }
  return events.length;
}

function isText(text: string, event: Event, wanted: string): boolean {
  return event.type === EVENT_ID.SCALAR && getScalarValue(text, event) === wanted;
}

function offsetOf(event: Event): number {
  if (event.type === EVENT_ID.SCALAR) return event.valueStart;
  if (event.type === EVENT_ID.ALIAS) return event.anchorStart;
  return event.type === EVENT_ID.SEQUENCE || event.type === EVENT_ID.MAPPING ? event.start : 0;
}

/** Offsets are given in ascending order, so the text is read once. */
class LineCounter {
  readonly #text: string;
  #line = 1;
  #next: number;

  constructor(text: string) {
    this.#text = text;
    this.#next = text.indexOf("\n");
  }

  at(offset: number): number {
    while (this.#next !== -1 && this.#next < offset) {
      this.#line++;
      this.#next = this.#text.indexOf("\n", this.#next + 1);
    }
    return this.#line;
  }
}
