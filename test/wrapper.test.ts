// What bin/turnout starts Node.js with, told by a node that prints it.
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
import { afterEach, beforeEach, expect, it } from "vitest";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout wrapper-"));
  for (const name of ["bin", "dist", "path"]) mkdirSync(join(folder, name));
  for (const name of ["turnout", "kube-proxy"])
    cpSync(join(import.meta.dirname, "..", "bin", name), join(folder, "bin", name));
  writeFileSync(
    join(folder, "path", "node"),
    `#!/bin/sh\nprintf '%s\\n' "$@" "certificates: $NODE_EXTRA_CA_CERTS"\n`,
  );
  chmodSync(join(folder, "path", "node"), 0o755);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function started(program: string, ...argv: readonly string[]) {
  const env = { PATH: `${join(folder, "path")}:${process.env.PATH}`, NODE_EXTRA_CA_CERTS: "/some.pem" };
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
    expect(lines.slice(-4, -1)).toEqual([`${folder}/bin/../dist/${name}.cjs`, "run", "--a b"]);
  }
});

it("a command that looks is started from what was compiled ahead, when it is there", () => {
  const look = () => started(join(folder, "bin", "turnout"), "status").lines.at(-3);
  writeFileSync(join(folder, "dist", "turnout.cjs"), "");
  expect(look()).toMatch(/dist\/turnout\.cjs$/);
  writeFileSync(join(folder, "dist", "quick-start.cjs"), "");
  expect(look()).toMatch(/dist\/quick-start\.cjs$/);
  expect(started(join(folder, "bin", "turnout"), "run").lines.at(-3)).toMatch(/dist\/turnout\.cjs$/);
});

it("on two cores a command that looks leaves one to V8's helpers", () => {
  writeFileSync(join(folder, "dist", "turnout.cjs"), "");
  const isTwo = readFileSync("/sys/devices/system/cpu/online", "utf8") === "0-1\n";
  expect(started(join(folder, "bin", "turnout"), "status").lines.includes("--v8-pool-size=1")).toBe(isTwo);
  expect(started(join(folder, "bin", "turnout"), "run").lines).not.toContain("--v8-pool-size=1");
});

it.each([
  ["", ["render", "--source=files:/x", "--node=node-a"]],
  ["", ["render", "--source", "files:/x,/y z", "-o", "json"]],
  ["", ["diff", "--source=files:/x", "--against=files:/y"]],
  ["/some.pem", ["status"]],
  ["/some.pem", ["render"]],
  ["/some.pem", ["diff", "--source=files:/x", "--against=kubeconfig:/y"]],
  ["/some.pem", ["diff", "--source", "api", "--against=files:/x"]],
  ["/some.pem", ["diff", "--against=files:/x", "--source=https://10.0.0.1"]],
  ["/some.pem", ["diff", "--source=files:/x", "--against", "playground"]],
  ["/some.pem", ["diff", "--source=files:/x", "--against=daemon:/s"]],
  ["/some.pem", ["run", "--source=files:/x"]],
])("certificates that Node.js reads: %j of %j", (certificates, argv) => {
  writeFileSync(join(folder, "dist", "turnout.cjs"), "");
  const { lines } = started(join(folder, "bin", "turnout"), ...argv);
  expect(lines.at(-1)).toBe(`certificates: ${certificates}`);
});
