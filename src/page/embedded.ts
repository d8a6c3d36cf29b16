// The static files that the build puts beside the programs: read only by a process that serves the page.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { PageFiles } from "./files.ts";

/** `folder`: that of the running program. Throws when the program was built without them. */
export function pageFiles(folder = dirname(process.argv[1]!)): PageFiles {
  return JSON.parse(readFileSync(join(folder, "page.json"), "utf8")) as PageFiles;
}
