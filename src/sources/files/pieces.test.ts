// Files piece by piece: put together again they are the file, however much is handed back of each piece.
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { type Pieces, withPieces } from "./pieces.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-pieces-"));
  path = join(folder, "file");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const nothing: Buffer = Buffer.alloc(0);
const text = (length: number) => Buffer.from(Array.from({ length }, (_, i) => 33 + (i % 90)));

/** Hands back so much of each piece, and puts the rest together. */
async function together(all: Pieces, back: number): Promise<{ text: Buffer; count: number }> {
  const done: Buffer[] = [];
  let rest = nothing;
  for (let count = 1; ; count++) {
    const piece = await all.next(rest);
    if (all.isLast) return { text: Buffer.concat([...done, piece]), count };
    const end = Math.max(0, piece.length - back);
    done.push(Buffer.from(piece.subarray(0, end)));
    rest = piece.subarray(end);
  }
}

it.each([
  [10_000, 1_000, 0, 10],
  [10_000, 1_000, 300, 10],
  [10_001, 1_000, 1_000, 11],
  [10_000, 10_000, 5, 1],
  [10_001, 10_000, 5, 2],
  [0, 1_000, 0, 1],
  // More than there is room for before a piece.
  [900_000, 150_000, 1_000_000, 6],
])(
  "%d bytes in pieces of %d, of which %d are handed back, are the file",
  async (bytes, size, back, count) => {
    const content = text(bytes);
    await writeFile(path, content);
    for (const isLasting of [false, true]) {
      const use = async (all: Pieces) => ({ ...(await together(all, back)), whole: await all.whole() });
      const found = await withPieces({ path, bytes, isLasting }, use, size);
      expect(found.text.equals(content)).toBe(true);
      expect(found.whole.equals(content)).toBe(true);
      expect(found.count).toBe(count);
    }
  },
);

it("uses the same memory again, unless what was given is to last", async () => {
  await writeFile(path, text(9_999));
  const givenOf = async (all: Pieces) => {
    const given: Buffer[] = [];
    while (!all.isLast) given.push(await all.next(nothing));
    return given;
  };
  for (const isLasting of [false, true]) {
    const given = await withPieces({ path, bytes: 9_999, isLasting }, givenOf, 1_000);
    expect(new Set(given.map(({ buffer }) => buffer)).size).toBe(isLasting ? 10 : 2);
    expect(Buffer.concat(given).equals(text(9_999))).toBe(isLasting);
  }
});

it("ends where a file ends that is shorter than it was", async () => {
  await writeFile(path, text(10_000));
  const found = await withPieces(
    { path, bytes: 10_000, isLasting: true },
    async (all) => {
      const first = await all.next(nothing);
      await truncate(path, 2_500);
      return Buffer.concat([first, (await together(all, 0)).text]);
    },
    1_000,
  );
  expect(found.equals(text(2_500))).toBe(true);
});

it("is all of a file that grew since somebody looked", async () => {
  await writeFile(path, text(7_700));
  const all = await withPieces(
    { path, bytes: 2_500, isLasting: true },
    (pieces) => together(pieces, 0),
    1_000,
  );
  expect(all.text.equals(text(7_700))).toBe(true);
});

it("a piece that cannot be read is told to whoever asks for it", async () => {
  for (const bytes of [10, 10_000]) {
    const asked = withPieces(
      { path: folder, bytes, isLasting: false },
      async (all) => {
        // Until then nobody may be told.
        await setTimeout(50);
        return all.next(nothing);
      },
      1_000,
    );
    await expect(asked).rejects.toThrow("EISDIR");
  }
});
