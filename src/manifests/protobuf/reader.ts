// Reads protobuf's wire format within the bytes of one message: tags, numbers, lengths and text.
import type { Buffer } from "node:buffer";
import { sharedText, textIn } from "./text.ts";

/** Bytes that are not a protobuf message. */
export class MalformedMessage extends Error {
  /** `Service shop/web`; empty: not known. */
  object = "";
  /** From the outside in; empty: not known. */
  field = "";

  /** With object and field, where they are known. */
  get reason(): string {
    return [this.object, this.field, this.message].filter((part) => part !== "").join(": ");
  }

  /** Called on the way out of each nested message. */
  in(field: string): this {
    this.field = this.field === "" ? field : `${field}.${this.field}`;
    return this;
  }
}

/** How a value is encoded: the low three bits of its tag. Groups (3 and 4) are refused; Kubernetes does not use them. */
export const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

export class Reader {
  readonly bytes: Buffer;
  at: number;
  /** Where the message that is being read ends. */
  end: number;

  constructor(bytes: Buffer, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  /** Field number and wire type. */
  tag(): number {
    const tag = this.#uint32();
    if (tag >>> 3 === 0) throw new MalformedMessage("a field has the number 0");
    return tag;
  }

  /** Reads the length of a nested message, text or bytes, and returns where it ends. */
  endOfValue(): number {
    const end = this.#uint32() + this.at;
    if (end > this.end) throw new MalformedMessage("a length exceeds the message");
    return end;
  }

  /** The low 32 bits, as in Go. */
  int32(): number {
    const first = this.bytes[this.at]!;
    if (first < 0x80 && this.at < this.end) {
      this.at++;
      return first;
    }
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#varintByte(shift);
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }

  /** Exact below 2 ** 53. */
  int64(): number {
    let value = 0n;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#varintByte(shift);
      value |= BigInt(byte & 0x7f) << BigInt(shift);
      if (byte < 0x80) return Number(BigInt.asIntN(64, value));
    }
  }

  /** Text that hardly repeats. */
  text(): string {
    const end = this.endOfValue();
    const text = textIn(this.bytes, this.at, end);
    this.at = end;
    return text;
  }

  /** Text that many objects repeat: one copy of it is kept. */
  sharedText(): string {
    const end = this.endOfValue();
    const text = sharedText(this.bytes, this.at, end);
    this.at = end;
    return text;
  }

  /** Skips a value; allocates nothing. */
  skip(tag: number): void {
    switch (tag & 7) {
      case wire.varint:
        for (let shift = 0; this.#varintByte(shift) >= 0x80; shift += 7);
        return;
      case wire.bytes:
        this.at = this.endOfValue();
        return;
      case wire.fixed64:
        this.#skipFixed(8);
        return;
      case wire.fixed32:
        this.#skipFixed(4);
        return;
      default:
        throw new MalformedMessage(`wire type ${tag & 7} is not supported`);
    }
  }

  /** A tag or a length. */
  #uint32(): number {
    const first = this.bytes[this.at]!;
    if (first < 0x80 && this.at < this.end) {
      this.at++;
      return first;
    }
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.#varintByte(shift);
      const bits = byte & 0x7f;
      if (bits !== 0 && (shift > 28 || (shift === 28 && bits > 15)))
        throw new MalformedMessage("a tag or a length has more than 32 bits");
      if (shift <= 28) value |= bits << shift;
      if (byte < 0x80) return value >>> 0;
    }
  }

  #varintByte(shift: number): number {
    if (shift > 63) throw new MalformedMessage("a number has more than 10 bytes");
    if (this.at >= this.end) throw new MalformedMessage("it ends too early");
    return this.bytes[this.at++]!;
  }

  #skipFixed(size: number): void {
    if (this.at + size > this.end) throw new MalformedMessage("it ends too early");
    this.at += size;
  }
}
