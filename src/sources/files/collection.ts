// The contents of all files: the last good state of each, one object per name, and their Problems.

import type { Problem } from "../../model/problem.ts";
import { same } from "../../model/same.ts";
import type { ParsedFile } from "./parse.ts";
import { type FoundObject, placeIn } from "./unfold.ts";

type Content = { readonly objects: readonly FoundObject[]; readonly problems: readonly Problem[] };

const empty: Content = { objects: [], problems: [] };

export type Change = { readonly set: readonly FoundObject[]; readonly gone: readonly FoundObject[] };

export class Collection {
  readonly #contents = new Map<string, Content>();
  #objects: ReadonlyMap<string, FoundObject> = new Map();
  #problems: readonly Problem[] = [];

  get problems(): readonly Problem[] {
    return this.#problems;
  }

  /** A broken file keeps the objects it had. */
  load(path: string, parsed: ParsedFile): void {
    if (parsed.kind === "good") return void this.#contents.set(path, parsed);
    const { objects } = this.#contents.get(path) ?? empty;
    const kept = objects.length > 0 ? "its last good state is kept" : "nothing in it counts";
    const { problem } = parsed;
    const problems = [{ ...problem, message: `${problem.message}; ${kept}` }];
    this.#contents.set(path, { objects, problems });
  }

  forget(path: string): void {
    this.#contents.delete(path);
  }

  paths(): string[] {
    return [...this.#contents.keys()];
  }

  /** Determines the current objects, and returns the changes since the last call. */
  settle(order: readonly string[], more: readonly Problem[]): Change {
    const objects = new Map<string, FoundObject>();
    const problems = [...more];
    const paths = new Set([...order, ...this.paths()]);
    let firsts: ReadonlyMap<string, string> | undefined;
    for (const path of paths) {
      const content = this.#contents.get(path) ?? empty;
      for (const problem of content.problems) problems.push(problem);
      for (const found of content.objects) {
        if (!objects.has(found.key)) {
          objects.set(found.key, found);
          continue;
        }
        firsts ??= this.#places(paths);
        problems.push(repeated(found.key, firsts.get(found.key)!, placeIn(path, found.place)));
      }
    }
    const before = this.#objects;
    this.#objects = objects;
    this.#problems = problems;
    return {
      set: [...objects.values()].filter((found) => !same(before.get(found.key)?.reading, found.reading)),
      gone: [...before.values()].filter((found) => !objects.has(found.key)),
    };
  }

  /** Where each object is defined first. */
  #places(paths: ReadonlySet<string>): ReadonlyMap<string, string> {
    const places = new Map<string, string>();
    for (const path of [...paths].reverse())
      for (const found of (this.#contents.get(path) ?? empty).objects.toReversed())
        places.set(found.key, placeIn(path, found.place));
    return places;
  }
}

function repeated(key: string, first: string, second: string): Problem {
  const message = `is defined in ${first} and again in ${second}; the first counts`;
  return { kind: "conflict", object: key, field: "", message };
}
