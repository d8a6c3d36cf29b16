// Reads files of many objects stretch by stretch, and none twice: of a text that is much like one before, only what differs is read.
import { jsonText } from "./json-text.ts";
import type { ListText } from "./list-text.ts";
import type { Pieces } from "./pieces.ts";
import { type Found, type FoundObject, type Ignored, unfold } from "./unfold.ts";
import { openBrace } from "./yaml-cursor.ts";
import { yamlText } from "./yaml-text.ts";

/** Some items side by side, as read where `line` was. */
type Stretch = { readonly found: Found; readonly line: number; readonly lines: number };
type KnownStretch = Stretch & { readonly text: Buffer };

/** A piece of a List, of which the items from here to there are complete. */
type Window = { readonly list: ListText; readonly bytes: Buffer; readonly from: number; readonly to: number };

/** From 100,000 on V8 expects that the JSON will stay, and it is gone with the stretch. */
const stretchBytes = 64_000;
/** Of its text, to recognise a stretch by. */
const beginningBytes = 500;

export class ListReader {
  readonly #stretchBytes: number;
  /** All so far whose text lasts, by its beginning. */
  readonly #known = new Map<string, KnownStretch>();

  #bytesRead = 0;

  constructor(size = stretchBytes) {
    this.#stretchBytes = size;
  }

  /** By all calls so far: what tests hold against the size of a change. */
  get bytesRead(): number {
    return this.#bytesRead;
  }

  /** Null when it is no List, or not one that can be read so. */
  async read(pieces: Pieces): Promise<Found | null> {
    let bytes = await pieces.next(Buffer.alloc(0));
    const list = bytes[0] === openBrace ? jsonText(bytes) : yamlText(bytes);
    if (list === null) return null;
    const reading = new Reading(list.line, this.#known.size === 0);
    const gap = list.begin - list.end;
    let { from } = list;
    while (!pieces.isLast) {
      const to = bytes.lastIndexOf(list.joint) + list.end;
      const end = this.#readItems({ list, bytes, from, to }, pieces, reading);
      // An item that is larger than a piece is nothing for us.
      if (end === null || end === from) return null;
      bytes = await pieces.next(bytes.subarray(end));
      from = 0;
    }
    const to = list.endOfLast(bytes);
    const end = to < from ? null : this.#readItems({ list, bytes, from, to }, pieces, reading);
    return end === to + gap && list.isEndedBy(bytes.toString("utf8", to)) ? reading.found : null;
  }

  /**
   * Those that are known where they stand, and what is between them in pieces of the usual length. Tells where what is left begins: what would be a
   * short stretch waits for the next piece. Null when something cannot be read.
   */
  #readItems(window: Window, { isLast, isLasting }: Pieces, reading: Reading): number | null {
    const { list, to } = window;
    const gap = list.begin - list.end;
    let { from } = window;
    let at = from;
    const read = (end: number): boolean => {
      const stretch = this.#stretch(window, from, end, reading.line, isLasting);
      if (stretch !== null) reading.add(stretch);
      return stretch !== null;
    };
    while (from < to) {
      const known = this.#known.get(beginning(window, at));
      if (known !== undefined && isAt(window, at, known.text)) {
        if (at > from && !read(at - gap)) return null;
        reading.add(known);
        at += known.text.length + gap;
        from = at;
        continue;
      }
      const end = endBehind(window, reading.isFirst ? from + this.#stretchBytes : at);
      at = end + gap;
      const isShort = end - from < this.#stretchBytes;
      if (isShort && end < to) continue;
      if (isShort && !isLast) return from;
      if (!read(end)) return null;
      from = at;
    }
    return from;
  }

  #stretch(window: Window, from: number, to: number, line: number, isLasting: boolean): Stretch | null {
    const { list, bytes } = window;
    const read = list.read(bytes, from, to, line);
    this.#bytesRead += to - from;
    if (read === null) return null;
    const stretch = { found: unfold(read.items, list.kind), line, lines: read.lines };
    if (isLasting) this.#known.set(beginning(window, from), { ...stretch, text: bytes.subarray(from, to) });
    return stretch;
  }
}

/** What was read so far. */
class Reading {
  readonly found = { objects: [] as FoundObject[], ignored: [] as Ignored[] };
  /** Of what follows. */
  line: number;
  /** Whether nothing was known before. */
  readonly isFirst: boolean;

  constructor(line: number, isFirst: boolean) {
    this.line = line;
    this.isFirst = isFirst;
  }

  add({ found, line, lines }: Stretch): void {
    const down = this.line - line;
    for (const object of found.objects) this.found.objects.push(moved(object, down));
    for (const other of found.ignored) this.found.ignored.push(moved(other, down));
    this.line += lines;
  }
}

function moved<T extends { readonly line: number }>(found: T, down: number): T {
  return down === 0 ? found : { ...found, line: found.line + down };
}

function beginning({ bytes, list: { kind } }: Window, from: number): string {
  return kind + bytes.toString("latin1", from, from + beginningBytes);
}

/** Where the item ends that this place belongs to. */
function endBehind({ bytes, to, list: { joint, end } }: Window, at: number): number {
  const next = bytes.indexOf(joint, at);
  return next === -1 || next >= to ? to : next + end;
}

/** Whether this text stands here, and an item ends with it. */
function isAt({ bytes, to, list: { joint, end } }: Window, from: number, text: Buffer): boolean {
  const behind = from + text.length;
  const rest = joint.subarray(end);
  const isEnd = behind >= to ? behind === to : bytes.subarray(behind, behind + rest.length).equals(rest);
  return isEnd && text.equals(bytes.subarray(from, behind));
}
