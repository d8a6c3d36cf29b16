// The configuration file under a running process: what ends it and what does not, on a real file system.
import { execFileSync } from "node:child_process";
import { appendFile, chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openConfigFile, type WatchedFile } from "./config-file.ts";

let folder: string;
let path: string;
let file: WatchedFile;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-config-"));
  path = join(folder, "config.yaml");
  await writeFile(path, "mode: ipvs\n");
  file = await openConfigFile(path);
});

afterEach(async () => {
  await file.close();
  await rm(folder, { recursive: true });
});

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** The reason to end, or null when none comes within a moment. */
const outcome = (of: WatchedFile, ms: number) => Promise.race([of.changed(), wait(ms).then(() => null)]);

describe("the watched file", () => {
  it("has its text", () => {
    expect(file.text).toBe("mode: ipvs\n");
  });

  it("01/31 ends the process when it is written to", async () => {
    await appendFile(path, "# more\n");
    expect(await outcome(file, 5_000)).toContain("changed");
  });

  it("ends the process when it is truncated, even if the same text is being written again", async () => {
    await writeFile(path, "");
    expect(await outcome(file, 5_000)).toContain("changed");
  });

  it("01/31 does not end the process when it is deleted, chmod-ed, touched or replaced by another file", async () => {
    await chmod(path, 0o600);
    await utimes(path, 1, 1);
    const other = join(folder, "other");
    await writeFile(other, "mode: iptables\n");
    await rename(other, path);
    expect(await outcome(file, 300)).toBeNull();
    await rm(path);
    expect(await outcome(file, 300)).toBeNull();
  });

  it("01/32 ends the process when it is renamed away", async () => {
    await rename(path, join(folder, "elsewhere"));
    expect(await outcome(file, 5_000)).toContain("renamed");
  });

  it("does not end the process when the symlink of a ConfigMap volume is swapped", async () => {
    const version = async (name: string) => {
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "c.yaml"), name);
      await symlink(name, join(folder, `${name}-link`));
    };
    await version("first");
    await version("second");
    await rename(join(folder, "first-link"), join(folder, "data"));
    const mounted = await openConfigFile(join(folder, "data", "c.yaml"));
    await rename(join(folder, "second-link"), join(folder, "data"));
    await rm(join(folder, "first"), { recursive: true });
    expect(await outcome(mounted, 300)).toBeNull();
    await mounted.close();
  });

  it("may be a pipe, which is read once and never changes", async () => {
    const fifo = join(folder, "fifo");
    execFileSync("mkfifo", [fifo]);
    const [piped] = await Promise.all([openConfigFile(fifo), writeFile(fifo, "mode: ipvs\n")]);
    expect(piped.text).toBe("mode: ipvs\n");
    expect(await outcome(piped, 300)).toBeNull();
    await piped.close();
  });

  it("refuses a directory", async () => {
    await expect(openConfigFile(folder)).rejects.toThrow("EISDIR");
  });

  it("refuses a file that is not there", async () => {
    await expect(openConfigFile(join(folder, "nothing"))).rejects.toThrow("ENOENT");
  });
});
