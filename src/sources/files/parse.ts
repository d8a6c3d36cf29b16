// Reads one file: YAML with many documents or JSON, Lists unfolded, each object with its place.
import type { Problem } from "../../model/problem.ts";
import type { Finding } from "./check.ts";
import { asyncDisk, type Disk } from "./disk.ts";
import { type Flaw, readDocuments } from "./documents.ts";
import type { FoundFile } from "./scan.ts";
import { type FoundObject, placeIn, unfold } from "./unfold.ts";

/** broken: the file cannot be used at all, it may be half written. */
export type ParsedFile =
  | { readonly kind: "good"; readonly objects: readonly FoundObject[]; readonly problems: readonly Problem[] }
  | { readonly kind: "broken"; readonly problem: Problem };

export async function parseFile({ path, bytes }: FoundFile, disk: Disk): Promise<ParsedFile> {
  try {
    // A file of size 0 may be a pipe, and reading that synchronously would block the process.
    const content = await (bytes === 0 ? asyncDisk : disk).read(path);
    return parseManifests(path, content.toString("utf8"));
  } catch (error) {
    const message = `cannot be read: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`;
    return { kind: "broken", problem: { kind: "unreadable", object: path, field: "", message } };
  }
}

export function parseManifests(path: string, text: string): ParsedFile {
  const documents = readDocuments(text);
  if ("message" in documents) return { kind: "broken", problem: broken(path, documents) };
  const { objects, ignored, invalid } = unfold(documents.roots);
  return {
    kind: "good",
    objects,
    problems: [
      ...ignored.map(({ place, message }) => ignoredAt(placeIn(path, place), message)),
      ...grouped(invalid).map(({ first, more }) =>
        ignoredAt(`${path}:${documents.lineOf(first.path)}`, `${first.message}${more}`),
      ),
    ],
  };
}

/** Of findings that many objects share, the first is reported with the number of others. */
function grouped(
  findings: readonly Finding[],
): readonly { readonly first: Finding; readonly more: string }[] {
  const groups = new Map<string, { readonly first: Finding; count: number }>();
  for (const first of findings) {
    const known = groups.get(first.kind);
    if (known === undefined) groups.set(first.kind, { first, count: 1 });
    else known.count++;
  }
  return [...groups.values()].slice(0, mostGroups).map(({ first, count }) => {
    return { first, more: count === 1 ? "" : ` (and ${count - 1} more)` };
  });
}

/** Finding the line of each is slow in a large file. */
const mostGroups = 20;

function ignoredAt(object: string, message: string): Problem {
  return { kind: "ignored", object, field: "", message };
}

function broken(path: string, { line, message }: Flaw): Problem {
  const text = message.split("\n")[0]!.replace(/\p{Cc}/gu, "?");
  return { kind: "unreadable", object: `${path}:${line}`, field: "", message: `cannot be read: ${text}` };
}
