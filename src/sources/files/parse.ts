// Reads one file: YAML with many documents or JSON, Lists unfolded, each object with its line.
import type { Problem } from "../../model/problem.ts";
import { type Flaw, type Located, readYaml } from "./any-yaml.ts";
import type { Disk } from "./disk.ts";
import { ListReader } from "./list-reader.ts";
import { type Pieces, withPieces } from "./pieces.ts";
import { readPlainYaml } from "./plain-yaml.ts";
import type { FoundFile } from "./scan.ts";
import { type Found, type FoundObject, unfold } from "./unfold.ts";

/** broken: nothing of the file can be trusted, it may be half written. */
export type ParsedFile =
  | { readonly kind: "good"; readonly objects: readonly FoundObject[]; readonly problems: readonly Problem[] }
  | { readonly kind: "broken"; readonly problem: Problem };

/** How to read: what the reader knows is not read again, and what it read in lasting pieces is known. */
export type Reader = { readonly lists: ListReader; readonly isLasting: boolean };

export async function parseFile(
  { path, bytes }: FoundFile,
  disk: Disk,
  reader?: Reader,
): Promise<ParsedFile> {
  const parse = (pieces: Pieces) => parseManifests(path, pieces, reader?.lists);
  try {
    return await withPieces({ path, bytes, isLasting: reader?.isLasting ?? false, disk }, parse);
  } catch (error) {
    const message = `cannot be read: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`;
    return { kind: "broken", problem: { kind: "unreadable", object: path, field: "", message } };
  }
}

export async function parseManifests(
  path: string,
  pieces: Pieces,
  lists = new ListReader(),
): Promise<ParsedFile> {
  const found = (await lists.read(pieces)) ?? readText((await pieces.whole()).toString("utf8"));
  if ("message" in found) return { kind: "broken", problem: broken(path, found) };
  return {
    kind: "good",
    objects: found.objects,
    problems: found.ignored.map(({ line, message }) => {
      return { kind: "ignored", object: `${path}:${line}`, field: "", message };
    }),
  };
}

/** In one piece. */
export function readText(text: string): Found | Flaw {
  const roots = readJson(text) ?? readPlainYaml(text) ?? readYaml(text);
  return "message" in roots ? roots : unfold(roots, "");
}

/** Null when it is not JSON, or not after all; the YAML reader then says where. */
function readJson(text: string): Located[] | null {
  if (!text.trimStart().startsWith("{")) return null;
  try {
    return [{ value: JSON.parse(text), line: 1 }];
  } catch {
    return null;
  }
}

function broken(path: string, { line, message }: Flaw): Problem {
  const text = message.split("\n")[0]!.replace(/\p{Cc}/gu, "?");
  return { kind: "unreadable", object: `${path}:${line}`, field: "", message: `cannot be read: ${text}` };
}
