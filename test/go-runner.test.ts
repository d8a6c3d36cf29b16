// The image's go-runner, which static pods of kops start: output to a file, signals passed on, the exit code kept.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const goRunner = join(import.meta.dirname, "..", "deploy", "image", "go-runner");
const printsBoth = ["sh", "-c", "echo out; echo err >&2; exit 3"] as const;
let folder: string;
let log: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout go-runner-"));
  log = join(folder, "kube-proxy.log");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function run(...argv: readonly string[]) {
  const { stdout, stderr, status } = spawnSync(goRunner, argv, { encoding: "utf8", timeout: 30_000 });
  return { stdout, stderr, status };
}

const logged = () => (existsSync(log) ? readFileSync(log, "utf8") : null);

describe("output", () => {
  it("goes to the file and to stdout, as kops starts it", () => {
    expect(run(`--log-file=${log}`, "--also-stdout", ...printsBoth)).toEqual({
      stdout: "out\nerr\n",
      stderr: "",
      status: 3,
    });
    expect(logged()).toBe("out\nerr\n");
  });

  it("goes to the file alone without --also-stdout, and is appended", () => {
    const argv = ["--log-file", log, "--also-stdout=false", ...printsBoth];
    expect([run(...argv), run(...argv)]).toEqual([
      { stdout: "", stderr: "", status: 3 },
      { stdout: "", stderr: "", status: 3 },
    ]);
    expect(logged()).toBe("out\nerr\n".repeat(2));
  });

  it("stays where it is without a file; stderr joins stdout unless --redirect-stderr=false", () => {
    expect(run(...printsBoth)).toEqual({ stdout: "out\nerr\n", stderr: "", status: 3 });
    expect(run("-redirect-stderr=false", "--", ...printsBoth)).toEqual({
      stdout: "out\n",
      stderr: "err\n",
      status: 3,
    });
    const argv = [`--log-file=${log}`, "--also-stdout", "--redirect-stderr=0", ...printsBoth];
    expect(run(...argv)).toEqual({ stdout: "out\n", stderr: "err\n", status: 3 });
    expect(logged()).toBe("out\n");
  });

  it("is complete when the program ends, however much it is", () => {
    const { stdout, status } = run(`--log-file=${log}`, "--also-stdout", "seq", "100000");
    expect([stdout.split("\n").length, status, logged()]).toEqual([100_001, 0, stdout]);
  });

  it("is in the file when go-runner exits", async () => {
    const late = ["sh", "-c", "seq 300000"];
    const child = spawn(goRunner, [`--log-file=${log}`, "--also-stdout", ...late], { stdio: "ignore" });
    await exitOf(child);
    expect(logged()?.endsWith("\n300000\n")).toBe(true);
  });

  it("arguments arrive as they are", () => {
    expect(run(`--log-file=${log}`, "--also-stdout", "printf", "<%s>", "a b", "", "*").stdout).toBe(
      "<a b><><*>",
    );
  });
});

const endsOnSignal =
  'for s in HUP INT QUIT TERM; do trap "echo got $s; exit 7" $s; done; echo ready; while :; do sleep 0.02; done';

describe.each([
  ["with a copy on stdout", ["--also-stdout"]],
  ["without", []],
])("signals %s", (_, flags) => {
  it.each(["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"] as const)(
    "%s reaches the program, which ends in its own way",
    async (signal) => {
      const child = spawn(goRunner, [`--log-file=${log}`, ...flags, "sh", "-c", endsOnSignal]);
      await expect.poll(logged).toBe("ready\n");
      child.kill(signal);
      expect(await exitOf(child)).toEqual([7, null]);
      expect(logged()).toBe(`ready\ngot ${signal.slice(3)}\n`);
    },
  );

  it("a program that ignores the first one is not abandoned", async () => {
    const stubborn = 'trap "echo no" TERM; trap "exit 5" INT; echo ready; while :; do sleep 0.02; done';
    const child = spawn(goRunner, [`--log-file=${log}`, ...flags, "sh", "-c", stubborn]);
    await expect.poll(logged).toBe("ready\n");
    child.kill("SIGTERM");
    await expect.poll(logged).toBe("ready\nno\n");
    child.kill("SIGINT");
    expect(await exitOf(child)).toEqual([5, null]);
  });
});

it("a signal to the whole process group ends the program too, and loses no output", async () => {
  const argv = [`--log-file=${log}`, "--also-stdout", "sh", "-c", endsOnSignal];
  const child = spawn(goRunner, argv, { detached: true });
  await expect.poll(logged).toBe("ready\n");
  process.kill(-child.pid!, "SIGTERM");
  expect(await exitOf(child)).toEqual([7, null]);
  expect(logged()).toBe("ready\ngot TERM\n");
});

it("a killed program gives 128 and the number of the signal", () => {
  const { status } = run(`--log-file=${log}`, "--also-stdout", "sh", "-c", "kill -KILL $$");
  expect(status).toBe(137);
});

it.each([
  [[], "a program to run is required: go-runner [FLAG…] PROGRAM [ARGUMENT…]"],
  [["--log-file"], "--log-file requires a value"],
  [["--log=x", "true"], "unknown flag: --log=x; flags: --log-file, --also-stdout, --redirect-stderr"],
  [["--also-stdout=x", "true"], 'invalid value "x" for --also-stdout: must be true or false'],
  [
    ["--log-file=/nowhere/x", "true"],
    "cannot write /nowhere/x; check that its directory exists and is writable",
  ],
])("refuses %j", (argv, reason) => {
  expect(run(...argv)).toEqual({ stdout: "", stderr: `go-runner: ${reason}\n`, status: 1 });
});

function exitOf(child: ChildProcess): Promise<readonly [number | null, string | null]> {
  return new Promise((resolve) => child.on("exit", (code, signal) => resolve([code, signal])));
}
