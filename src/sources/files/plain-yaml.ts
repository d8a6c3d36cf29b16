// Reads the plain YAML that programs write, quickly: it is rewritten as JSON. What is beyond that is left to the library.
import { isUtf8 } from "node:buffer";
import { hashOf } from "../../model/hash.ts";
import type { Located } from "./any-yaml.ts";
import { JsonBytes } from "./json-bytes.ts";
import { KnownLines } from "./known-lines.ts";
import { folded, jsonOf, kindOf, unquoted } from "./plain-scalar.ts";
import {
  bar,
  closeBrace,
  closeBracket,
  colon,
  comma,
  dash,
  doubleQuote,
  NotPlain,
  newline,
  openBrace,
  openBracket,
  plus,
  singleQuote,
  space,
  YamlCursor,
} from "./yaml-cursor.ts";

/** What stands there, and how many lines it takes up. */
export type PlainYaml = { readonly values: readonly Located[]; readonly lines: number };

/** Its documents. Null when the text is not plain, or wrong: the library then reads it, or says what is wrong and where. */
export function readPlainYaml(text: string): readonly Located[] | null {
  return readDocuments(Buffer.from(text))?.values ?? null;
}

/** The same of bytes. */
export function readDocuments(bytes: Buffer): PlainYaml | null {
  return read(bytes, (reader) => reader.documents());
}

/** The items of a sequence that nothing stands around. */
export function readItems(bytes: Buffer): PlainYaml | null {
  return read(bytes, (reader) => reader.items());
}

function read(bytes: Buffer, how: (reader: PlainReader) => PlainYaml): PlainYaml | null {
  if (!isPlainText(bytes)) return null;
  try {
    return how(new PlainReader(bytes.at(-1) === newline ? bytes : Buffer.concat([bytes, Buffer.from("\n")])));
  } catch (fault) {
    if (fault instanceof NotPlain) return null;
    throw fault;
  }
}

/** Tabs are space in some places, returns belong to the ends of lines, and a byte order mark is nothing. */
function isPlainText(bytes: Buffer): boolean {
  const hasOrderMark = bytes.includes(0xef) && bytes.includes("\uFEFF");
  return !bytes.includes("\t") && !bytes.includes("\r") && !hasOrderMark && isUtf8(bytes);
}

/** The line of a value and, when it has `items`, those of what stands there. */
type Lines = { readonly line: number; items?: readonly Lines[] };

/** Our stack holds more levels, and no object has as many. */
const widest = 200;
/** The library refuses keys of more than 1024 characters. */
const longestKey = 1000;
const mostKeys = 1_000;
/** Hashes of the keys so far, in all mappings that are still open. */
const keys = new Int32Array(mostKeys);
/** By all readers. */
const known = new KnownLines();

/** Goes through the text once. Whatever reads a value leaves the cursor at the next line that says something. */
class PlainReader {
  readonly #in: YamlCursor;
  readonly #view: DataView;
  readonly #out: JsonBytes;
  #keyCount = 0;

  constructor(bytes: Buffer) {
    this.#in = new YamlCursor(bytes);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    // JSON is shorter than YAML, unless there is next to nothing in it.
    this.#out = new JsonBytes(2 * bytes.length + 1000);
  }

  documents(): PlainYaml {
    const lines: Lines[] = [];
    this.#out.put(openBracket);
    this.#in.nextLine();
    for (;;) {
      if (this.#in.column === 0) lines.push(this.#document());
      // Indented less or more than anything that it could belong to.
      if (this.#in.column !== -1) throw new NotPlain();
      if (this.#in.atEnd) break;
      this.#in.at += "---".length;
      this.#in.endLine();
    }
    this.#out.close(closeBracket);
    return this.#found(lines);
  }

  items(): PlainYaml {
    const all: Lines = { line: 0 };
    this.#in.nextLine();
    if (this.#in.column === -1 || !this.#in.isItem) throw new NotPlain();
    this.#sequence(all);
    if (!this.#in.atEnd) throw new NotPlain();
    return this.#found(all.items!);
  }

  #found(lines: readonly Lines[]): PlainYaml {
    const values = this.#out.parsed() as readonly unknown[];
    return { values: values.map((value, i) => located(value, lines[i]!)), lines: this.#in.line - 1 };
  }

  #document(): Lines {
    const lines = { line: this.#in.line };
    this.#mapping(lines);
    this.#out.put(comma);
    return lines;
  }

  #mapping(lines: Lines | null): void {
    const { column } = this.#in;
    const outer = this.#keyCount;
    this.#out.put(openBrace);
    do {
      if (!this.#knownEntry(column, outer)) this.#entry(column, outer, lines);
      this.#out.put(comma);
    } while (this.#in.column === column);
    this.#keyCount = outer;
    this.#out.close(closeBrace);
  }

  /** A key, and what stands behind or below it. */
  #entry(column: number, outer: number, lines: Lines | null): void {
    const { at } = this.#in;
    const { length } = this.#out;
    const isItems = this.#key(outer);
    this.#out.put(colon);
    this.#in.skipSpaces();
    if (!this.#in.isDone) {
      this.#scalar(column);
      if (this.#in.ended === known.end) this.#keep(at, length);
      return;
    }
    if (this.#in.at === known.end && !isItems) this.#keep(at, length);
    this.#in.endLine();
    this.#below(column, isItems ? lines : null);
  }

  #keep(at: number, length: number): void {
    known.keep(this.#in.bytes, at, this.#out, length, keys[this.#keyCount - 1]!);
  }

  /** The same, where a line like this came before. */
  #knownEntry(column: number, outer: number): boolean {
    const { at, line } = this.#in;
    if (!known.look(this.#view, at)) return false;
    const { length } = this.#out;
    known.copyTo(this.#out);
    this.#addKey(known.keyHash, outer);
    const { isKeyAlone } = known;
    this.#in.at = known.end;
    this.#in.nextLine();
    if (isKeyAlone) this.#below(column, null);
    else if (this.#in.column > column) {
      // Its text goes on, or something is wrong.
      this.#in.at = at;
      this.#in.line = line;
      this.#out.cut(length);
      this.#keyCount--;
      return false;
    }
    return true;
  }

  /** Whether it is `items`. */
  #key(outer: number): boolean {
    const { bytes, at, isQuote } = this.#in;
    const end = this.#in.keyEnd();
    if (end === -1 || end - at > longestKey) throw new NotPlain();
    const from = isQuote ? at + 1 : at;
    const to = isQuote ? end - 1 : end;
    const isText = isQuote
      ? !bytes.subarray(from, to).includes(singleQuote)
      : bytes[to - 1] !== space && kindOf(bytes, from, to) === "text";
    if (!isText || !this.#out.copyText(bytes, from, to)) throw new NotPlain();
    this.#addKey(hashOf(bytes, from, to), outer);
    this.#in.at = end + 1;
    return to - from === "items".length && this.#in.text(from, to) === "items";
  }

  /** Refuses keys that are there already, or may be. */
  #addKey(hash: number, outer: number): void {
    for (let i = outer; i < this.#keyCount; i++) if (keys[i] === hash) throw new NotPlain();
    if (hash === mergeHash || this.#keyCount === mostKeys) throw new NotPlain();
    keys[this.#keyCount++] = hash;
  }

  /** What stands below a key. */
  #below(column: number, lines: Lines | null): void {
    // The dashes of a sequence may stand right below the key.
    if (this.#in.column >= column && this.#in.isItem) this.#sequence(lines);
    else if (this.#in.column > column) this.#node(column, null);
    else this.#out.write("null");
  }

  #sequence(lines: Lines | null): void {
    const { column } = this.#in;
    const items: Lines[] = [];
    this.#out.put(openBracket);
    do {
      this.#toItem(column);
      const item = lines === null ? null : { line: this.#in.line };
      if (item !== null) items.push(item);
      this.#node(column, item);
      this.#out.put(comma);
    } while (this.#in.column === column && this.#in.isItem);
    if (lines !== null) lines.items = items;
    this.#out.close(closeBracket);
  }

  /** From the dash to what stands behind or below it. */
  #toItem(column: number): void {
    const from = this.#in.at++;
    this.#in.skipSpaces();
    if (this.#in.isDone) this.#in.endLine();
    else this.#in.column += this.#in.at - from;
    if (this.#in.column <= column) throw new NotPlain();
  }

  /** `parent`: the column of the key or dash that this belongs to. */
  #node(parent: number, lines: Lines | null): void {
    if (parent > widest) throw new NotPlain();
    if (this.#in.isItem) this.#sequence(null);
    else if (this.#in.keyEnd() !== -1) this.#mapping(lines);
    // Behind a comment further left the library does not know any more where the text should end.
    else if (this.#in.commented) throw new NotPlain();
    else this.#scalar(parent);
  }

  #scalar(parent: number): void {
    const first = this.#in.bytes[this.#in.at];
    if (this.#in.isQuote) this.#quoted(parent);
    else if (first === bar) this.#block(parent);
    else if (first === openBrace) this.#empty(closeBrace, "{}");
    else if (first === openBracket) this.#empty(closeBracket, "[]");
    else this.#plain(parent);
  }

  #empty(close: number, json: string): void {
    if (this.#in.bytes[this.#in.at + 1] !== close) throw new NotPlain();
    this.#out.write(json);
    this.#in.at += 2;
    this.#in.endLine();
  }

  #plain(parent: number): void {
    const { bytes, at } = this.#in;
    let { line } = this.#in;
    const end = this.#plainLine(this.#in.plainEnd());
    if (this.#in.column <= parent) {
      const kind = kindOf(bytes, at, end);
      if (kind === "json") this.#out.copy(bytes, at, end);
      else if (kind === "unclear" || !this.#out.copyText(bytes, at, end))
        this.#out.write(jsonOf(this.#in.text(at, end)));
      return;
    }
    let text = this.#in.text(at, end);
    do {
      if (this.#in.commented) throw new NotPlain();
      const from = this.#in.at;
      text += folded(this.#in.line - line);
      line = this.#in.line;
      text += this.#in.text(from, this.#plainLine(this.#in.plainStop()));
    } while (this.#in.column > parent);
    this.#out.write(JSON.stringify(text));
  }

  /** Passes what is on this line, and says where it ended. */
  #plainLine(stop: number): number {
    const { bytes } = this.#in;
    if (stop === -1) throw new NotPlain();
    let end = stop;
    while (bytes[end - 1] === space) end--;
    this.#in.at = stop;
    this.#in.endLine();
    return end;
  }

  #quoted(parent: number): void {
    const { bytes, at } = this.#in;
    const end = this.#in.quotedEnd();
    if (bytes[at] !== doubleQuote || !this.#out.copyText(bytes, at + 1, end - 1)) {
      this.#countLines(at, end, parent);
      this.#out.write(JSON.stringify(unquoted(this.#in.text(at, end))));
    }
    this.#in.at = end;
    this.#in.endLine();
  }

  /** Each line but the first is blank, or indented further than what the scalar belongs to. */
  #countLines(from: number, to: number, parent: number): void {
    for (let at = this.#in.lineEnd(from); at < to; at = this.#in.lineEnd(at + 1)) {
      const spaces = this.#in.spacesAt(at + 1);
      if (spaces <= parent && this.#in.bytes[at + 1 + spaces] !== newline) throw new NotPlain();
      this.#in.line++;
    }
  }

  /** `|`, `|-` or `|+`, and the lines below it that are indented at least as far as the first. */
  #block(parent: number): void {
    const { bytes } = this.#in;
    const chomping = bytes[++this.#in.at];
    if (chomping === dash || chomping === plus) this.#in.at++;
    const start = this.#in.at + 1;
    const indent = this.#in.spacesAt(start);
    if (bytes[start - 1] !== newline || indent <= parent) throw new NotPlain();
    let end = start;
    let next = start;
    for (; next < bytes.length; next++) {
      const spaces = this.#in.spacesAt(next);
      const isBlank = bytes[next + spaces] === newline;
      if (isBlank && spaces > 0) throw new NotPlain();
      if (!isBlank && spaces < indent) break;
      if (!isBlank) end = next = this.#in.lineEnd(next);
      this.#in.line++;
    }
    const breaks = chomping === dash ? 0 : chomping === plus ? next - end : 1;
    const text = this.#in.text(start + indent, end).replaceAll(`\n${" ".repeat(indent)}`, "\n");
    this.#out.write(JSON.stringify(text + "\n".repeat(breaks)));
    this.#in.at = next - 1;
    this.#in.nextLine();
  }
}

function located(value: unknown, { line, items }: Lines): Located {
  if (items === undefined) return { value, line };
  const values = (value as { readonly items: readonly unknown[] }).items;
  return { value, line, items: items.map((item, i) => located(values[i], item)) };
}

const mergeHash = hashOf(Buffer.from("<<"), 0, 2);
