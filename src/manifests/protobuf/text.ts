// Text from bytes, with few allocations: short text without a native call, repeated text without a copy.
import type { Buffer } from "node:buffer";
import { intern } from "../objects.ts";

/** Invalid UTF-8 becomes U+FFFD, as in JSON from the same server. */
export function textIn(bytes: Buffer, start: number, end: number): string {
  for (let i = start; i < end; i++) if (bytes[i]! >= 0x80) return bytes.toString("utf8", start, end);
  return bytes.toString("latin1", start, end);
}

/** Recently used text by the hash of its bytes; a collision replaces the older text. */
const recent: string[] = new Array(1 << 14).fill("");
/** Node names are up to 253 bytes; the table must not keep long text alive. */
const longestShared = 256;

/** The same string for the same bytes, without a copy if it was used recently. */
export function sharedText(bytes: Buffer, start: number, end: number): string {
  const length = end - start;
  if (length > longestShared) return textIn(bytes, start, end);
  let hash = length;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + bytes[i]!) | 0;
  const slot = (hash ^ (hash >>> 14)) & (recent.length - 1);
  const known = recent[slot]!;
  if (known.length === length && hasBytes(known, bytes, start)) return known;
  const text = intern(textIn(bytes, start, end));
  recent[slot] = text;
  return text;
}

/** Whether bytes of the same length are this text. True only for ASCII: a byte above 127 is no character by itself. */
export function hasBytes(text: string, bytes: Buffer, start: number): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code !== bytes[start + i] || code >= 0x80) return false;
  }
  return true;
}
