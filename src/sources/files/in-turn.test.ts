// Files one after the other: the second is a change of the first, and ends where reading it alone ends.
import { mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import { arbitraryObjects, type Objects, thisNode } from "../../../test/generators.ts";
import { service, slice, viewOf } from "../../../test/support/api-rig.ts";
import { fastClock } from "../../../test/support/fast-clock.ts";
import { kinds } from "../../manifests/objects.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { Collection } from "./collection.ts";
import { parseManifests } from "./parse.ts";
import { filesInTurn } from "./source.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-turn-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const listOf = (objects: Objects) =>
  kinds.flatMap((kind) => objects[kind].map((object) => ({ ...(object as object), kind })));

async function put(name: string, items: readonly object[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, JSON.stringify({ kind: "List", apiVersion: "v1", items }, null, 2));
  // Such a file is read immediately.
  await utimes(path, 1, 1);
  return path;
}

async function inTurn(...paths: readonly string[]): Promise<readonly Snapshot[]> {
  const found: Snapshot[] = [];
  const sets = paths.map((path) => [path]);
  for await (const snapshot of filesInTurn(sets, thisNode, fastClock(100), new AbortController().signal))
    found.push(snapshot);
  return found;
}

const sortedProblems = ({ problems }: Snapshot) => problems.map((problem) => JSON.stringify(problem)).sort();

it("ends where reading the second alone ends, on generated pairs", { timeout: 300_000 }, async () => {
  const objects = arbitraryObjects({ hostile: true });
  await fc.assert(
    fc.asyncProperty(objects, objects, async (before, after) => {
      const shared = { ...after, Service: [...before.Service.slice(0, 2), ...after.Service] };
      const [a, b] = [await put("a.json", listOf(before)), await put("b.json", listOf(shared))];
      const [, second] = await inTurn(a, b);
      const [alone] = await inTurn(b);
      expect(viewOf(second)).toEqual(viewOf(alone));
      expect(sortedProblems(second!)).toEqual(sortedProblems(alone!));
    }),
    { numRuns: 100 },
  );
});

it("only what differs is a change, however it is printed", () => {
  const items = ["a", "b", "c"].flatMap((name) => [service(name), slice(`${name}-x`, name, ["10.0.0.1"])]);
  const collection = new Collection();
  const settle = (path: string, list: object, width: number) => {
    collection.load(path, parseManifests(path, JSON.stringify(list, null, width)));
    for (const other of collection.paths()) if (other !== path) collection.forget(other);
    const { set, gone } = collection.settle([path], []);
    return { set: set.map(({ key }) => key), gone: gone.map(({ key }) => key) };
  };
  const list = (...some: readonly object[]) => ({ kind: "List", apiVersion: "v1", items: some });
  expect(settle("a.json", list(...items), 0).set).toHaveLength(6);
  expect(settle("b.json", list(...items), 2)).toEqual({ set: [], gone: [] });
  const moved = slice("b-x", "b", ["10.0.0.2"]);
  expect(settle("c.json", list(...items.slice(0, 3), moved), 2)).toEqual({
    set: [expect.stringMatching(/^EndpointSlice .*b-x$/)],
    gone: [expect.stringMatching(/^Service .*c$/), expect.stringMatching(/^EndpointSlice .*c-x$/)],
  });
});
