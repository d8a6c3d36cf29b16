// Progress of reading files: nothing when it is fast, else one line per second, never on stdout.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { outputOf } from "../../test/support/command-output.ts";
import { render } from "../cli/commands/render.ts";
import { syncDisk } from "../sources/files/disk.ts";
import { withProgress } from "./read-progress.ts";

/** Each file takes this long to read. */
function diskOf(bytes: number, tookMs: number, isTerminal = false) {
  let [now, text] = [0, ""];
  const read = async () => {
    now += tookMs;
    return Buffer.alloc(bytes);
  };
  const shown = (some: string) => {
    text += some;
  };
  const clock = { wall: () => now, steady: () => now, after: () => () => {} };
  const disk = withProgress({ ...syncDisk, read }, { stderr: shown, isTerminal }, clock);
  return { disk, text: () => text };
}

describe("user/7: progress", () => {
  it("prints the number of files once per second", async () => {
    const { disk, text } = diskOf(500_000, 10);
    for (let i = 0; i < 250; i++) await disk.read(`/x/${i}.yaml`);
    disk.done();
    expect(text().split("\n")).toEqual([
      'reading "99.yaml" (0.5 MB), after 99 files of 49.5 MB',
      'reading "199.yaml" (0.5 MB), after 199 files of 99.5 MB',
      "",
    ]);
  });

  it.each([
    ["large.yaml", 8_000_000, 'reading "large.yaml" (8.0 MB)\n'],
    ["large.json", 40_000_000, 'reading "large.json" (40.0 MB)\n'],
    ["small.yaml", 7_000_000, ""],
    ["small.json", 39_000_000, ""],
  ])("%s of %i bytes is announced before it is parsed, if that takes a second", async (name, bytes, line) => {
    const { disk, text } = diskOf(bytes, 0);
    await disk.read(`/x/${name}`);
    expect(text()).toBe(line);
  });

  it("rewrites one line on a terminal, and removes it at the end", async () => {
    const { disk, text } = diskOf(9_000_000, 0, true);
    await disk.read("/x/a.yaml");
    await disk.read("/x/b\u001b[2J.yaml");
    disk.done();
    disk.done();
    expect(text()).toBe(
      '\r\u001b[Kreading "a.yaml" (9.0 MB)\r\u001b[Kreading "b\\u001b[2J.yaml" (9.0 MB), after 1 file of 9.0 MB\r\u001b[K',
    );
  });

  it("is printed on stderr by a command", async () => {
    const folder = mkdtempSync(join(tmpdir(), "turnout-progress-"));
    const node = "kind: Node\napiVersion: v1\nmetadata: {name: node-a}\n";
    writeFileSync(join(folder, "large.yaml"), `${node}# ${"x".repeat(8_000_000)}\n`);
    const printed = await outputOf(render, `--source=files:${folder}`, "--node=node-a");
    rmSync(folder, { recursive: true });
    expect(printed.err).toMatch(/^reading "large.yaml" \(8\.0 MB\)\n! no Services found/);
    expect(printed.out).not.toContain("reading");
  });
});
