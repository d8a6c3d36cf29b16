// Splits a byte stream into lines at LF only, so that no character is split and U+2028 is text.
import { ApiFailure } from "./failure.ts";

const lineFeed = 0x0a;

/** Takes chunks and returns the lines they complete, without line ends. An unfinished line is kept for the next chunk. */
export function lineSplitter(maxBytes: number): (chunk: Buffer) => Buffer[] {
  let parts: Buffer[] = [];
  let held = 0;
  return (chunk) => {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      const tail = chunk.subarray(start, end);
      lines.push(held === 0 ? tail : Buffer.concat([...parts, tail]));
      parts = [];
      held = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      parts.push(chunk.subarray(start));
      held += chunk.length - start;
    }
    if (held > maxBytes)
      throw new ApiFailure("garbled", `Cannot read the stream: a line is longer than ${maxBytes} bytes`);
    return lines;
  };
}
