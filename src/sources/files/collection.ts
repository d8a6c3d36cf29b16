// What all files together say: the last good state of each, one object per name, and everything wrong with them.

import type { Problem } from "../../model/problem.ts";
import { same } from "../../model/same.ts";
import type { FileObject, ParsedFile } from "./parse.ts";

type Content = { readonly objects: readonly FileObject[]; readonly problems: readonly Problem[] };

const empty: Content = { objects: [], problems: [] };

export type Change = { readonly set: readonly FileObject[]; readonly gone: readonly FileObject[] };

export class Collection {
  readonly #contents = new Map<string, Content>();
  #objects: ReadonlyMap<string, FileObject> = new Map();
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

  /** Settles which objects there are now, and tells what is different from the last time. */
  settle(order: readonly string[], more: readonly Problem[]): Change {
    const objects = new Map<string, FileObject>();
    const problems = [...more];
    for (const path of [...order, ...this.paths().filter((known) => !order.includes(known))]) {
      const content = this.#contents.get(path) ?? empty;
      problems.push(...content.problems);
      for (const found of content.objects) {
        const first = objects.get(found.key);
        if (first === undefined) objects.set(found.key, found);
        else problems.push(repeated(first, found));
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
}

function repeated(first: FileObject, second: FileObject): Problem {
  const message = `is defined in ${first.path}:${first.line} and again in ${second.path}:${second.line}; the first counts`;
  return { kind: "conflict", object: second.key, field: "", message };
}
