// Text from bytes; text that repeats is not copied.
import type { Buffer } from "node:buffer";
import { intern } from "../objects.ts";
import { SharedValues } from "./shared.ts";

/** Invalid UTF-8 becomes U+FFFD, as in JSON from the same server. */
export function textIn(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i++) if (bytes[i]! >= 0x80) return bytes.toString("utf8", start, end);
  return bytes.toString("latin1", start, end);
}

const texts = new SharedValues<string>(1 << 14);

/** The same string for the same bytes, as far as it was used recently. */
export function sharedText(bytes: Buffer, start: number, end: number): string {
  return texts.find(bytes, start, end) ?? texts.keep(bytes, start, end, intern(textIn(bytes, start, end)));
}
