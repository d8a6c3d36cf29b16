// Where we are in a plain YAML text: the place, its line, and how far that line is indented.

/** Thrown where the library has to read the text instead. */
export class NotPlain extends Error {}

export const newline = 10;
export const space = 32;
export const doubleQuote = 34;
export const hash = 35;
export const singleQuote = 39;
export const plus = 43;
export const comma = 44;
export const dash = 45;
export const dot = 46;
export const colon = 58;
export const question = 63;
export const openBracket = 91;
export const backslash = 92;
export const closeBracket = 93;
export const openBrace = 123;
export const bar = 124;
export const closeBrace = 125;

/** What plain text cannot start with. */
const indicators = table("!\"#%&'*,>@[]`{|}");

export class YamlCursor {
  readonly bytes: Buffer;
  /** The text starts as if a line had ended before it. */
  at = -1;
  line = 0;
  /** Where what the line says begins, counted from its start; -1 where a document ends. */
  column = -1;
  /** Whether a comment stands between this and what the cursor passed before. */
  commented = false;
  /** Where what stood before it ended on its line. */
  ended = -1;

  /** They end with the end of a line. */
  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get atEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  /** From the end of a line to the next one that says something. */
  nextLine(): void {
    const bytes = this.bytes;
    let at = this.at;
    this.commented = false;
    for (;;) {
      const start = ++at;
      this.line++;
      while (bytes[at] === space) at++;
      if (bytes[at] === hash) {
        this.commented = true;
        at = this.lineEnd(at);
      } else if (bytes[at] !== newline) {
        this.at = at;
        this.column = this.atEnd || (at === start && this.#isMarker()) ? -1 : at - start;
        return;
      }
    }
  }

  /** From behind a value to the next line that says something; in between there may be a comment. */
  endLine(): void {
    this.skipSpaces();
    this.ended = this.at;
    const isComment = this.bytes[this.at] === hash && this.bytes[this.at - 1] === space;
    if (isComment) this.at = this.lineEnd(this.at);
    else if (this.bytes[this.at] !== newline) throw new NotPlain();
    this.nextLine();
    if (isComment) this.commented = true;
  }

  /** `---`; its counterpart `...` is nothing that programs write. */
  #isMarker(): boolean {
    const { bytes, at } = this;
    if (bytes[at] === dot) throw new NotPlain();
    return bytes[at] === dash && bytes[at + 1] === dash && bytes[at + 2] === dash;
  }

  skipSpaces(): void {
    while (this.bytes[this.at] === space) this.at++;
  }

  spacesAt(from: number): number {
    let at = from;
    while (this.bytes[at] === space) at++;
    return at - from;
  }

  lineEnd(from: number): number {
    return this.bytes.indexOf(newline, from);
  }

  /** Whether a word ends before this place. */
  isEmpty(at: number): boolean {
    return this.bytes[at] === space || this.bytes[at] === newline;
  }

  /** Whether the line says nothing more. */
  get isDone(): boolean {
    return this.isEmpty(this.at) || this.bytes[this.at] === hash;
  }

  /** Whether an item of a sequence starts here. */
  get isItem(): boolean {
    return this.bytes[this.at] === dash && this.isEmpty(this.at + 1);
  }

  get isQuote(): boolean {
    return this.bytes[this.at] === doubleQuote || this.bytes[this.at] === singleQuote;
  }

  /** Where the colon stands behind the key that starts here; -1 when none does. */
  keyEnd(): number {
    const end = this.isQuote ? this.quotedEnd() : this.plainEnd();
    return this.bytes[end] === colon && this.isEmpty(end + 1) ? end : -1;
  }

  /** Where the plain text that starts here stops; -1 when something else starts here. */
  plainEnd(): number {
    const first = this.bytes[this.at]!;
    if (indicators[first] === 1) return -1;
    if ((first === dash || first === question || first === colon) && this.isEmpty(this.at + 1)) return -1;
    return this.plainStop();
  }

  /** The end of the line, its comment, or the colon that makes what is before it a key. */
  plainStop(): number {
    const bytes = this.bytes;
    for (let at = this.at; ; at++) {
      const byte = bytes[at];
      if (byte === newline) return at;
      if (byte === colon && this.isEmpty(at + 1)) return at;
      if (byte === hash && bytes[at - 1] === space) return at;
    }
  }

  /** Behind the closing quote. */
  quotedEnd(): number {
    const bytes = this.bytes;
    const quote = bytes[this.at];
    for (let at = this.at + 1; at < bytes.length; at++) {
      if (bytes[at] === backslash && quote === doubleQuote) at++;
      else if (bytes[at] === quote) {
        // Two single quotes stand for one.
        if (quote === doubleQuote || bytes[at + 1] !== quote) return at + 1;
        at++;
      }
    }
    throw new NotPlain();
  }

  text(from: number, to: number): string {
    return this.bytes.toString("utf8", from, to);
  }
}

/** Says of each byte whether it is one of these characters. */
export function table(characters: string): Uint8Array {
  const bytes = new Uint8Array(256);
  for (const character of characters) bytes[character.charCodeAt(0)] = 1;
  return bytes;
}
