// What the programs in bin/ start Node.js with, shown by a node that prints its arguments.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout wrapper-"));
  for (const name of ["bin", "dist", "path"]) mkdirSync(join(folder, name));
  for (const name of ["turnout", "kube-proxy", "node.sh"])
    cpSync(join(import.meta.dirname, "..", "bin", name), join(folder, "bin", name));
  putNode(join(folder, "path"), "v26.0.0");
});

/** A node that prints its name and arguments. */
function putNode(where: string, version: string) {
  const file = join(where, "node");
  writeFileSync(
    file,
    `#!/bin/sh\n[ "$*" = --version ] && { echo ${version}; exit; }\nprintf '%s\\n' "$0" "$@"\n`,
  );
  chmodSync(file, 0o755);
}

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function started(program: string, ...argv: readonly string[]) {
  const env = { PATH: `${join(folder, "path")}:${process.env.PATH}` };
  const { stdout, stderr, status } = spawnSync(program, argv, { encoding: "utf8", env, cwd: folder });
  return { lines: stdout.slice(0, -1).split("\n"), stderr, status };
}

it.each(["turnout", "kube-proxy"])("%s that is not built prints what to do", (name) => {
  const reason = `${name}: not built yet: run 'npm run build' in ${folder}\n`;
  expect(started(join(folder, "bin", name))).toEqual({ lines: [""], stderr: reason, status: 1 });
});

it.each(["turnout", "kube-proxy"])("%s runs the code that Node.js ships for its own modules", (name) => {
  writeFileSync(join(folder, "dist", `${name}.cjs`), "");
  const { lines } = started(join(folder, "bin", name), "run");
  const flags = lines.slice(1).filter((line) => line.startsWith("--"));
  expect(flags).not.toEqual([]);
  // V8 rejects that code under flags that change what it compiles.
  const script = `require("node:http");
    const { internalBinding } = require("internal/test/binding");
    console.log([...internalBinding("builtins").getCacheUsage().compiledWithoutCache].length);`;
  const args = [...flags, "--expose-internals", "--no-warnings", "-e", script];
  expect(spawnSync(process.execPath, args, { encoding: "utf8" }).stdout).toBe("0\n");
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

describe.each(["turnout", "kube-proxy"])("the Node.js of %s", (name) => {
  const path = (...parts: readonly string[]) => join(folder, ...parts);
  const run = () => started(path("bin", name), "run");
  beforeEach(() => writeFileSync(path("dist", `${name}.cjs`), ""));

  it("is the pinned one, whatever PATH has", () => {
    putNode(path("path"), "v20.0.0");
    mkdirSync(path("node_modules", ".bin"), { recursive: true });
    putNode(path("node_modules", ".bin"), "v26.0.0");
    expect(run().lines[0]).toBe(`${folder}/bin/../node_modules/.bin/node`);
  });

  it.each(["v26.0.0", "v27.1.0", "v100.0.0"])("is the one in PATH without a pinned one: %s", (version) => {
    putNode(path("path"), version);
    expect(run().lines[0]).toBe(path("path", "node"));
  });

  it.each(["v20.20.2", "v8.0.0", ""])("is not one in PATH that does not satisfy engines: %j", (version) => {
    putNode(path("path"), version);
    const reason = `${name}: cannot find Node.js 26 or newer: run 'npm run build' in ${folder}, or put it in PATH\n`;
    expect(run()).toEqual({ lines: [""], stderr: reason, status: 1 });
  });

  it("does not open its inspector on SIGUSR1", () => {
    expect(run().lines[1]).toBe("--disable-sigusr1");
  });
});

it("requires the Node.js that package.json requires and pins", () => {
  const root = join(import.meta.dirname, "..");
  const { engines, optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const major = /-ge (\d+) \]/.exec(readFileSync(join(root, "bin", "node.sh"), "utf8"))?.[1];
  expect(engines.node).toBe(`>=${major}`);
  expect(Object.values<string>(optionalDependencies).map((version) => version.split(".")[0])).toEqual([
    major,
    major,
  ]);
  expect(process.versions.node.split(".")[0]).toBe(major);
});
