// Reads Lists stretch by stretch, and none twice: of a text that is much like one before, only what differs is read.
import type { Located } from "./any-yaml.ts";
import { type Items, type ListText, listText, moved } from "./list-text.ts";

/** Some items side by side, as text and as read. */
type Stretch = Items & { readonly text: Buffer };

/** Long enough that V8 expects many objects to stay, short enough that a change leaves most stretches alone. */
const stretchBytes = 128_000;
/** Of its text, to recognise a stretch by. */
const beginningBytes = 500;

export class ListReader {
  readonly #stretchBytes: number;
  /** All so far, by the beginning of their text. */
  readonly #known = new Map<string, Stretch>();

  #bytesRead = 0;

  constructor(size = stretchBytes) {
    this.#stretchBytes = size;
  }

  /** By all calls so far: what tests hold against the size of a change. */
  get bytesRead(): number {
    return this.#bytesRead;
  }

  /** Null when it is no List, or not one that can be read so. */
  read(bytes: Buffer): Located | null {
    const list = listText(bytes);
    if (list === null) return null;
    const items: Located[] = [];
    let { line } = list;
    for (const stretch of this.#stretches(list)) {
      if (stretch === null) return null;
      for (const item of stretch.items) items.push(moved(item, line));
      line += stretch.lines;
    }
    return list.around(items);
  }

  /** Those that are known where they stand, and what is between them in pieces of the usual length. */
  *#stretches(list: ListText): Generator<Stretch | null> {
    const gap = list.begin - list.end;
    const isFirst = this.#known.size === 0;
    let from = list.from;
    let at = from;
    while (from < list.to) {
      const known = this.#knownAt(list, at);
      if (known !== null) {
        if (at > from) yield this.#readStretch(list, from, at - gap);
        yield known;
        at += known.text.length + gap;
        from = at;
        continue;
      }
      const end = endBehind(list, isFirst ? from + this.#stretchBytes : at);
      at = end + gap;
      if (end < list.to && end - from < this.#stretchBytes) continue;
      yield this.#readStretch(list, from, end);
      from = at;
    }
  }

  #knownAt(list: ListText, from: number): Stretch | null {
    const known = this.#known.get(beginning(list.bytes, from));
    if (known === undefined) return null;
    const to = from + known.text.length;
    return isEnd(list, to) && known.text.equals(list.bytes.subarray(from, to)) ? known : null;
  }

  #readStretch(list: ListText, from: number, to: number): Stretch | null {
    const items = list.read(from, to);
    this.#bytesRead += to - from;
    if (items === null) return null;
    const stretch = { ...items, text: list.bytes.subarray(from, to) };
    this.#known.set(beginning(list.bytes, from), stretch);
    return stretch;
  }
}

function beginning(bytes: Buffer, from: number): string {
  return bytes.toString("latin1", from, from + beginningBytes);
}

/** Where the item ends that this place belongs to. */
function endBehind({ bytes, to, joint, end }: ListText, at: number): number {
  const next = bytes.indexOf(joint, at);
  return next === -1 || next >= to ? to : next + end;
}

/** Whether an item can end here. */
function isEnd({ bytes, to, joint, end }: ListText, at: number): boolean {
  if (at >= to) return at === to;
  return bytes.compare(joint, end, joint.length, at, at + joint.length - end) === 0;
}
