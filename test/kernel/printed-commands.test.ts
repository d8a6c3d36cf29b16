// Every command line that README and the docs' first sections print is run as it is printed, in a copy of the repository.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type FilesDaemon, startLine, untilServed } from "./files-run.ts";
import { createNamespace, type Namespace, reasonToSkip } from "./netns.ts";
import { cannotRun, printedLines, reasonNotToRun } from "./printed-lines.ts";

const root = join(import.meta.dirname, "..", "..");
const lines = printedLines();
const runnable = lines.filter(({ line }) => reasonNotToRun(line) === null);
/** Comes first: the others need what it builds. */
const build = "npm run build";
const isDaemon = (line: string) => /^(bin\/)?turnout run /.test(line);
/** `diff` and `doctor` end with 3 when there is something to report. */
const codesOf = (line: string) => (/turnout (diff|doctor) /.test(line) ? [0, 3] : [0]);

describe("the lines themselves", () => {
  it("are found in README and in the docs", () => {
    const count = (file: string) => lines.filter((each) => each.file === file).length;
    expect(count("README.md")).toBeGreaterThan(5);
    expect(count("docs/commands.md")).toBeGreaterThan(5);
    expect(count("docs/troubleshooting.md")).toBeGreaterThan(0);
    expect(runnable.length).toBeGreaterThan(8);
  });

  it("that are not run are printed somewhere: the list has no others", () => {
    const stale = Object.keys(cannotRun).filter((start) => !lines.some(({ line }) => line.startsWith(start)));
    expect(stale).toEqual([]);
  });
});

describe.skipIf(reasonToSkip() !== null)("as printed", () => {
  const copy = mkdtempSync(join(tmpdir(), "turnout-printed-"));
  let netns: Namespace;
  let daemon: FilesDaemon;
  let built: ReturnType<typeof sh>;

  beforeAll(async () => {
    // Nothing to do where `npm test` has been started.
    execFileSync(process.execPath, ["scripts/setup.mjs"], { cwd: root });
    const left = ["node_modules", "dist", ".git"].map((name) => join(root, name));
    cpSync(root, copy, { recursive: true, preserveTimestamps: true, filter: (path) => !left.includes(path) });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    const shop = readFileSync(join(root, "examples/shop/shop.yaml"), "utf8");
    writeFileSync(join(copy, "new.yaml"), shop.replace("30080", "30090"));
    cpSync(join(root, "examples/shop"), join(copy, "manifests"), { recursive: true });
    built = sh(build);
    netns = createNamespace("printed");
    netns.ip("link set lo up");
    daemon = startLine(netns, runnable.find(({ line }) => isDaemon(line))!.line, copy);
    await untilServed(netns, daemon, "172.30.0.10");
  });
  afterAll(async () => {
    await daemon?.stop();
    netns?.remove();
    rmSync(copy, { recursive: true, force: true });
  });

  const env = () => ({ ...process.env, PATH: `${join(copy, "bin")}:${process.env.PATH}` });
  const sh = (line: string, before: readonly string[] = []) => {
    const command = [...before, "sh", "-c", line];
    const { status, stdout, stderr } = spawnSync(command[0]!, command.slice(1), {
      cwd: copy,
      env: env(),
      encoding: "utf8",
      // A line that serves until it is stopped belongs on the list of those that are not run.
      timeout: 60_000,
    });
    return { status, stdout, stderr };
  };

  it(`README.md: ${build}`, () => {
    expect(lines).toContainEqual({ file: "README.md", line: build });
    expect(built).toMatchObject({ status: 0, stdout: expect.stringContaining("built dist/kube-proxy.cjs") });
  });

  it.for(runnable.filter(({ line }) => !isDaemon(line) && line !== build))(
    "$file: $line",
    ({ line }, { skip }) => {
      const [program = ""] = line.split(" ");
      skip(sh(`command -v ${program}`).status !== 0, `${program} is not installed`);
      // Where the daemon runs: as on a node.
      const { status, stdout, stderr } = sh(line, [
        "nsenter",
        `--target=${daemon.pid()}`,
        "--net",
        "--mount",
        `--wd=${copy}`,
      ]);
      expect({ line, code: codesOf(line).includes(status ?? -1), stderr }).toEqual({
        line,
        code: true,
        stderr: expect.not.stringMatching(/turnout \w+: |Error:|not found/),
      });
      expect(stdout).not.toBe("");
    },
  );

  it.each(runnable.filter(({ line }) => isDaemon(line)))("$file: $line", async ({ line }) => {
    const own = createNamespace("printed-run");
    own.ip("link set lo up");
    const started = startLine(own, line, copy);
    try {
      await untilServed(own, started, "172.30.0.10");
      // The example has a Service with a mistake, so that there is something to see.
      expect(started.log()).not.toMatch(/^E(?!.*"Service shop\/broken")/m);
      expect(await started.stop()).toBe(0);
    } finally {
      await started.stop();
      own.remove();
    }
  });
});
