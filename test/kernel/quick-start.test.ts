// The tool starts with what was compiled ahead, and as well without it, or beside what belongs to another build.
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

const root = join(import.meta.dirname, "..", "..");
const dist = join(root, "dist");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-start-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a copy of the build that this was done to. */
function started(spoil: (program: string, compiled: string) => void, ...argv: readonly string[]) {
  const [quick, program, compiled] = ["quick-start.cjs", "turnout.cjs", "turnout.compiled"].map((name) => {
    copyFileSync(join(dist, name), join(folder, name));
    return join(folder, name);
  }) as [string, string, string];
  spoil(program, compiled);
  const { stdout, stderr, status } = spawnSync(process.execPath, [quick, ...argv], { encoding: "utf8" });
  return { stdout, stderr, status };
}

const shop = [`--source=files:${join(root, "examples", "shop")}`, "--node=node-a"];

it("what was compiled ahead is of this build, and V8 takes it", () => {
  const source = readFileSync(join(dist, "turnout.cjs"), "utf8");
  const compiled = readFileSync(join(dist, "turnout.compiled"));
  expect(source.endsWith(compiled.toString("latin1", 0, 65))).toBe(true);
  expect(source).not.toMatch(/[^\0-\x7f]/);
  const filename = join(dist, "turnout.cjs");
  // In a worker of this test V8 may have other flags than a program of its own.
  const taken = `const { readFileSync } = require("node:fs");
    const cachedData = readFileSync(process.argv[2]).subarray(65);
    const source = require("node:module").wrap(readFileSync(process.argv[1], "utf8"));
    console.log(new (require("node:vm").Script)(source, { cachedData }).cachedDataRejected);`;
  const { stdout } = spawnSync(process.execPath, ["-e", taken, filename, join(dist, "turnout.compiled")], {
    encoding: "utf8",
  });
  expect(stdout).toBe("false\n");
});

it.each<[string, (program: string, compiled: string) => void]>([
  ["all is well", () => {}],
  ["there is none", (_, compiled) => rmSync(compiled)],
  ["it is empty", (_, compiled) => truncateSync(compiled, 0)],
  ["it is cut off", (_, compiled) => truncateSync(compiled, 100_000)],
  [
    "it is of another V8",
    (_, compiled) => {
      const bytes = readFileSync(compiled);
      bytes.fill(0xff, 65, 85);
      writeFileSync(compiled, bytes);
    },
  ],
])("explains and renders when %s", (_, spoil) => {
  const explained = started(spoil, "explain", "outside", "nodeport:30080", ...shop);
  expect(explained).toMatchObject({ stderr: "", status: 0 });
  expect(explained.stdout).toContain("30080 is a NodePort of shop/web:http");
  expect(started(spoil, "render", "-o", "nftables", ...shop).stdout).toContain("table ip kube-proxy {");
});

it("a program that was changed is run as it is now, also when it is as long as before", () => {
  const otherVersion = (program: string) => {
    const text = readFileSync(program, "utf8");
    const changed = text.replace(`"${version}"`, `"${version.replace(/\d/g, "9")}"`).slice(0, -65);
    writeFileSync(program, `${changed}${"0".repeat(64)}\n`);
    expect(readFileSync(program)).toHaveLength(Buffer.byteLength(text));
  };
  expect(started(otherVersion, "--version").stdout).toBe(`turnout ${version.replace(/\d/g, "9")}\n`);
});

it("ends with the code of the command", () => {
  expect(started(() => {}, "nonsense").status).toBe(1);
  expect(started(() => {}, "--version")).toEqual({ stdout: `turnout ${version}\n`, stderr: "", status: 0 });
});
