// Reads one file: YAML with many documents or JSON, Lists unfolded, each object with its line.
import type { Problem } from "../../model/problem.ts";
import { type Flaw, type Located, readYaml } from "./any-yaml.ts";
import { ListReader } from "./list-reader.ts";
import { readPlainYaml } from "./plain-yaml.ts";
import { type Found, type FoundObject, unfold } from "./unfold.ts";

export type FileObject = FoundObject & { readonly path: string };

/** broken: nothing of the file can be trusted, it may be half written. */
export type ParsedFile =
  | { readonly kind: "good"; readonly objects: readonly FileObject[]; readonly problems: readonly Problem[] }
  | { readonly kind: "broken"; readonly problem: Problem };

/** What the `reader` knows already is not read again. */
export function parseManifests(path: string, bytes: Buffer, reader = new ListReader()): ParsedFile {
  const found = reader.read(bytes) ?? readText(bytes.toString("utf8"));
  if ("message" in found) return { kind: "broken", problem: broken(path, found) };
  return {
    kind: "good",
    objects: found.objects.map((object) => ({ ...object, path })),
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
