// Both ways to read a disk return the same, also for unreadable files.
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { asyncDisk, type Disk, syncDisk } from "./disk.ts";
import { parseFile } from "./parse.ts";
import { scan } from "./scan.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-disk-"));
  await writeFile(join(folder, "file.yaml"), "kind: Node\n");
  await writeFile(join(folder, "empty.json"), "");
  await symlink("file.yaml", join(folder, "link.yaml"));
  await symlink("nothing", join(folder, "broken.yaml"));
  await symlink("loop.yaml", join(folder, "loop.yaml"));
  await mkdir(join(folder, "folder.yaml"));
});
afterAll(() => rm(folder, { recursive: true }));

it.each([
  "file.yaml",
  "empty.json",
  "link.yaml",
  "broken.yaml",
  "loop.yaml",
  "folder.yaml",
  "missing.yaml",
  "file.yaml/more.yaml",
])("%s", async (name) => {
  const path = join(folder, name);
  const [hasty, patient] = [syncDisk, asyncDisk].map(async (disk) => ({
    stat: await disk.stat(path).then(({ ino, size, mtimeNs }) => [ino, size, mtimeNs], codeOf),
    text: await disk.read(path).then(String, codeOf),
  }));
  expect(await hasty).toEqual(await patient);
});

it("find the same files", async () => {
  const found = await scan([folder, join(folder, "missing")], syncDisk);
  expect(found).toEqual(await scan([folder, join(folder, "missing")], asyncDisk));
  expect(found.files.map(({ path }) => path.slice(folder.length + 1))).toEqual([
    "empty.json",
    "file.yaml",
    "link.yaml",
  ]);
});

it("a file of size 0 may be a pipe, and is read without blocking", async () => {
  const blocks: Disk = { ...syncDisk, read: () => Promise.reject(new Error("blocks")) };
  const read = (name: string, bytes: number) =>
    parseFile({ path: join(folder, name), stamp: "", changedAt: 0, bytes }, blocks);
  expect(await read("empty.json", 0)).toMatchObject({ kind: "good", objects: [] });
  expect(await read("file.yaml", 0)).toMatchObject({ kind: "good", objects: [{ place: { line: 1 } }] });
  expect(await read("file.yaml", 11)).toMatchObject({ problem: { message: "cannot be read: blocks" } });
});

function codeOf(error: NodeJS.ErrnoException): string | undefined {
  return error.code;
}
