import type { FileHandle } from "node:fs/promises";
import { expect, it } from "vitest";
import { SavedFile } from "./saved-file.ts";

it("is written while the disk is slow, in order, and one write after the other is on the disk", async () => {
  const calls: string[] = [];
  const syncs: (() => void)[] = [];
  const handle = {
    appendFile: async (text: string) => void calls.push(text),
    datasync: () => new Promise<void>((resolve) => syncs.push(resolve)),
    close: async () => void calls.push("closed"),
  } as Partial<FileHandle> as FileHandle;
  const file = new SavedFile(handle, 0);
  const onDisk: string[] = [];
  for (const text of ["a", "b"]) void file.append(text).then(() => onDisk.push(text));
  await expect.poll(() => [calls, syncs.length]).toEqual([["a", "b"], 1]);
  expect(onDisk).toEqual([]);
  syncs[0]!();
  await expect.poll(() => [onDisk, syncs.length]).toEqual([["a"], 2]);
  const closing = file.close();
  syncs[1]!();
  await closing;
  expect([onDisk, calls]).toEqual([
    ["a", "b"],
    ["a", "b", "closed"],
  ]);
});

it("fails from the first write on that fails", async () => {
  const handle = {
    appendFile: async (text: string) => {
      if (text === "b") throw new Error("no space");
    },
    datasync: async () => {},
    close: async () => {},
  } as Partial<FileHandle> as FileHandle;
  const file = new SavedFile(handle, 0);
  const ends = ["a", "b", "c"].map((text) =>
    file.append(text).then(
      () => "saved",
      (error: Error) => error.message,
    ),
  );
  expect(await Promise.all(ends)).toEqual(["saved", "no space", "no space"]);
  await file.close();
});
