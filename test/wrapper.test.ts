// What the programs in bin/ start Node.js with, shown by a node that prints its arguments.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout wrapper-"));
  for (const name of ["bin", "dist", "path"]) mkdirSync(join(folder, name));
  for (const name of ["turnout", "kube-proxy"])
    cpSync(join(import.meta.dirname, "..", "bin", name), join(folder, "bin", name));
  writeFileSync(join(folder, "path", "node"), `#!/bin/sh\nprintf '%s\\n' "$@"\n`);
  chmodSync(join(folder, "path", "node"), 0o755);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function started(program: string, ...argv: readonly string[]) {
  const env = { PATH: `${join(folder, "path")}:${process.env.PATH}` };
  const { stdout, stderr, status } = spawnSync(program, argv, { encoding: "utf8", env, cwd: folder });
  return { lines: stdout.slice(0, -1).split("\n"), stderr, status };
}

it.each(["turnout", "kube-proxy"])("%s that is not built says what to do", (name) => {
  const reason = `${name}: not built yet: run 'npm run build' in ${folder}\n`;
  expect(started(join(folder, "bin", name))).toEqual({ lines: [""], stderr: reason, status: 1 });
});

it.each(["turnout", "kube-proxy"])("%s finds its program from everywhere", (name) => {
  writeFileSync(join(folder, "dist", `${name}.cjs`), "");
  symlinkSync(join(folder, "bin", name), join(folder, "path", name));
  symlinkSync(join(folder, "bin"), join(folder, `bin-of-${name}`));
  const ways = [join(folder, "bin", name), name, `bin/${name}`, `bin-of-${name}/${name}`];
  for (const way of ways) {
    const { lines } = started(way, "run", "--a b");
    expect(lines.slice(-3)).toEqual([`${folder}/bin/../dist/${name}.cjs`, "run", "--a b"]);
  }
});
