// Scans of folders that are moved at the same time.
import { mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { scan } from "./scan.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-scan-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

it("a folder that is removed during the scan is gone, and not empty", async () => {
  const [here, away] = [join(folder, "here"), join(folder, "away")];
  await mkdir(here);
  for (const name of ["a.yaml", "b.yaml", "c.yaml"]) await writeFile(join(here, name), "");
  for (let i = 0; i < 500; i++) {
    const [{ files, missing }] = await Promise.all([scan([here]), rename(here, away)]);
    expect([files.length, missing.length]).toEqual(missing.length === 0 ? [3, 0] : [0, 1]);
    await rename(away, here);
  }
});

it("a folder that is replaced during the scan is one or the other", async () => {
  const [here, one, other] = [join(folder, "here"), join(folder, "one"), join(folder, "other")];
  for (const [path, name] of [
    [here, "a"],
    [other, "b"],
  ] as const) {
    await mkdir(path);
    for (const i of [1, 2, 3]) await writeFile(join(path, `${name}${i}.yaml`), "");
  }
  for (let i = 0; i < 500; i++) {
    const swap = async () => {
      await rename(here, one);
      await rename(other, here);
      await rename(one, other);
    };
    const [{ files, missing }] = await Promise.all([scan([here]), swap()]);
    const names = new Set(files.map(({ path }) => path.slice(here.length + 1, here.length + 2)));
    expect([files.length, names.size, missing.length]).toEqual(missing.length === 0 ? [3, 1, 0] : [0, 0, 1]);
  }
});
