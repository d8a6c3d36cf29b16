// Splits a byte stream into frames: each follows its length, four bytes in big-endian order.
import { MalformedProtobuf } from "../failure.ts";

const lengthBytes = 4;

/** Takes chunks and returns the frames they complete, without lengths. An unfinished frame is kept for the next chunk. */
export function frameSplitter(maxBytes: number): (chunk: Buffer) => Buffer[] {
  let parts: Buffer[] = [];
  let held = 0;
  /** How many bytes must be there before the next step: a length, or a length and its frame. */
  let wanted = lengthBytes;
  return (chunk) => {
    const frames: Buffer[] = [];
    parts.push(chunk);
    held += chunk.length;
    if (held < wanted) return frames;
    const bytes = parts.length === 1 ? chunk : Buffer.concat(parts, held);
    let at = 0;
    while (held - at >= wanted) {
      const length = lengthAt(bytes, at, maxBytes);
      wanted = lengthBytes + length;
      if (held - at < wanted) break;
      frames.push(bytes.subarray(at + lengthBytes, at + wanted));
      at += wanted;
      wanted = lengthBytes;
    }
    held -= at;
    parts = held === 0 ? [] : [bytes.subarray(at)];
    return frames;
  };
}

function lengthAt(bytes: Buffer, at: number, maxBytes: number): number {
  const length = bytes.readUInt32BE(at);
  if (length > maxBytes)
    throw new MalformedProtobuf(
      "garbled",
      `Cannot read the stream: a frame is longer than ${maxBytes} bytes`,
    );
  return length;
}
