// Formats a crash with its places in the source files; the bundle's source map is read only then.
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join } from "node:path";

// Not --enable-source-maps: V8 then keeps the decoded map, 17 MiB, from the first time an error's stack is read, and
// streams read the stack of every error they end with.
export function printCrash(error: unknown): string {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const maps = new Map<string, SourceMap | null>();
  return text.replace(
    /([^\s(]+\.cjs):(\d+):(\d+)/g,
    (place: string, file: string, line: string, column: string) => {
      if (!maps.has(file)) maps.set(file, mapOf(file));
      const found = maps.get(file)?.findEntry(Number(line) - 1, Number(column) - 1);
      if (found === undefined || !("originalSource" in found)) return place;
      const { originalSource, originalLine, originalColumn } = found;
      return `${join(dirname(file), originalSource)}:${originalLine + 1}:${originalColumn + 1}`;
    },
  );
}

/** null without a map, as in images. */
function mapOf(file: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
  } catch {
    return null;
  }
}
