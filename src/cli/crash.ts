// Tells a bug with its places in the sources: the map beside a bundle is read only then.
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, join } from "node:path";

// V8 could do it (--enable-source-maps), but keeps the whole map unfolded from the first error on that anybody looks at,
// and streams look at every error they end with: 17 MiB.
export function printCrash(bug: unknown): string {
  const text = bug instanceof Error ? (bug.stack ?? bug.message) : String(bug);
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

/** null: there is none, as in images. */
function mapOf(file: string): SourceMap | null {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
  } catch {
    return null;
  }
}
