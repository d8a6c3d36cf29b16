// Files piece by piece: put together again they are the file, however much is handed back of each piece.
import { type FileHandle, mkdtemp, open, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { onePiece, type Pieces, piecesOf } from "./pieces.ts";

let folder: string;
let handle: FileHandle;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-pieces-"));
});

afterEach(async () => {
  await handle?.close();
  await rm(folder, { recursive: true, force: true });
});

const text = (length: number) => Buffer.from(Array.from({ length }, (_, i) => 33 + (i % 90)));

async function pieces(content: Buffer, size: number, isLasting = false): Promise<Pieces> {
  const path = join(folder, "file");
  await writeFile(path, content);
  handle = await open(path);
  return piecesOf(handle, isLasting, size);
}

/** Hands back so much of each piece, and puts the rest together. */
async function together(all: Pieces, back: number): Promise<{ text: Buffer; count: number }> {
  const done: Buffer[] = [];
  let rest = Buffer.alloc(0);
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
  async (length, size, back, count) => {
    for (const isLasting of [false, true]) {
      const content = text(length);
      const all = await pieces(content, size, isLasting);
      const found = await together(all, back);
      expect(found.text.equals(content)).toBe(true);
      expect(found.count).toBe(count);
      expect((await all.whole()).equals(content)).toBe(true);
      await handle.close();
    }
  },
);

it("uses the same memory again, unless what was given is to last", async () => {
  for (const isLasting of [false, true]) {
    const all = await pieces(text(9_999), 1_000, isLasting);
    const given: Buffer[] = [];
    while (!all.isLast) given.push(await all.next(Buffer.alloc(0)));
    expect(new Set(given.map(({ buffer }) => buffer)).size).toBe(isLasting ? 10 : 2);
    expect(Buffer.concat(given).equals(text(9_999))).toBe(isLasting);
    expect(all.isLasting).toBe(isLasting);
    await handle.close();
  }
});

it("ends where a file ends that became shorter", async () => {
  const all = await pieces(text(10_000), 1_000);
  const first = await all.next(Buffer.alloc(0));
  const start = Buffer.from(first);
  await truncate(join(folder, "file"), 2_500);
  const { text: rest } = await together(all, 0);
  expect(Buffer.concat([start, rest]).equals(text(2_500))).toBe(true);
});

it("a piece that cannot be read is told to whoever asks for it", async () => {
  handle = await open(folder);
  const stat = async () => ({ isFile: () => true, size: 10_000 });
  const all = await piecesOf(Object.assign(handle, { stat }) as unknown as FileHandle, false, 1_000);
  await expect(all.next(Buffer.alloc(0))).rejects.toThrow("EISDIR");
});

it("what is there already is one piece", async () => {
  const all = onePiece(text(10));
  expect((await all.next(Buffer.alloc(0))).equals(text(10))).toBe(true);
  expect([all.isLast, all.isLasting]).toEqual([true, true]);
});
