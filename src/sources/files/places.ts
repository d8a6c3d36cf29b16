// The lines at which the documents of a YAML text and the items of its Lists start, from js-yaml's events.
import { EVENT_ID, type Event } from "js-yaml";

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

/** The offsets of the items of the root mapping. */
function itemsOf(text: string, events: readonly Event[], root: number): readonly number[] {
  if (events[root]?.type !== EVENT_ID.MAPPING) return [];
  for (let key = root + 1; events[key]!.type !== EVENT_ID.POP; ) {
    const value = endOf(events, key);
    if (isText(text, events[key]!, "items"))
      return childrenOf(events, value).map((i) => offsetOf(events[i]!));
    key = endOf(events, value);
  }
  return [];
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
  return event.type === EVENT_ID.SCALAR && text.slice(event.valueStart, event.valueEnd) === wanted;
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
