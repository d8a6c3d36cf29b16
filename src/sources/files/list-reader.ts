// Reads Lists stretch by stretch, and none twice: of a text that is much like one before, only what differs is read.
import { type ListText, listText } from "./list-text.ts";
import { type Found, type FoundObject, type Ignored, unfold } from "./unfold.ts";

/** Some items side by side, as text and as read, with lines counted from 0. */
type Stretch = { readonly text: Buffer; readonly found: Found; readonly lines: number };

/** From 100,000 on V8 expects that the JSON will stay, and it is gone with the stretch. */
const stretchBytes = 64_000;
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
  read(bytes: Buffer): Found | null {
    const list = listText(bytes);
    if (list === null) return null;
    const objects: FoundObject[] = [];
    const ignored: Ignored[] = [];
    let { line } = list;
    for (const stretch of this.#stretches(list)) {
      if (stretch === null) return null;
      for (const object of stretch.found.objects) objects.push({ ...object, line: line + object.line });
      for (const other of stretch.found.ignored) ignored.push({ ...other, line: line + other.line });
      line += stretch.lines;
    }
    return { objects, ignored };
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
    const known = this.#known.get(beginning(list, from));
    if (known === undefined) return null;
    const to = from + known.text.length;
    return isEnd(list, to) && known.text.equals(list.bytes.subarray(from, to)) ? known : null;
  }

  #readStretch(list: ListText, from: number, to: number): Stretch | null {
    const items = list.read(from, to);
    this.#bytesRead += to - from;
    if (items === null) return null;
    const text = list.bytes.subarray(from, to);
    const stretch = { text, found: unfold(items, list.kind), lines: list.lines(from, to) };
    this.#known.set(beginning(list, from), stretch);
    return stretch;
  }
}

function beginning({ bytes, kind }: ListText, from: number): string {
  return kind + bytes.toString("latin1", from, from + beginningBytes);
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
