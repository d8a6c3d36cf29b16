// Exit codes and output of a program, as its parent process sees them.
import { spawnSync } from "node:child_process";
import { buildSync } from "esbuild";
import { expect, it } from "vitest";

const { outputFiles } = buildSync({
  stdin: {
    contents: `import { exitWith } from "./exit.ts";
import { systemClock } from "../observe/clock.ts";
globalThis.clock = systemClock;
exitWith(COMMAND);`,
    resolveDir: import.meta.dirname,
  },
  bundle: true,
  platform: "node",
  format: "cjs",
  write: false,
});
const program = outputFiles[0]!.text;

it.each([
  ["Promise.resolve(3)", 3, ""],
  ["new Promise((done) => setTimeout(() => done(0), 50))", 0, ""],
  ["new Promise((done) => clock.after(50, () => done(0)))", 0, ""],
  ["(clock.after(60_000, () => {}), Promise.resolve(3))", 3, ""],
  ["Promise.reject(new Error('no'))", 2, "Error: no"],
  ["new Promise(() => setTimeout(() => { throw new Error('later') }))", 2, "Error: later"],
  ["new Promise(() => {})", 2, "the command is pending, but the event loop is empty"],
])("of %s the code is %i", (command, code, message) => {
  const { status, stderr } = spawnSync(process.execPath, ["-e", program.replace("COMMAND", command)]);
  expect(status).toBe(code);
  expect(String(stderr)).toContain(message);
  expect(message === "" ? String(stderr) : "").toBe("");
});

it("exits when all output is read, however slowly, and waits for nothing else", () => {
  const idle = "setTimeout(() => {}, 60_000)";
  const command = `(${idle}, process.stdout.write("x".repeat(3_000_000)), Promise.resolve(0))`;
  const line = `"$0" -e "$1" | (sleep 0.5; wc -c)`;
  const argv = ["-c", line, process.execPath, program.replace("COMMAND", command)];
  const { stdout, status } = spawnSync("sh", argv, { timeout: 20_000 });
  expect([String(stdout).trim(), status]).toEqual(["3000000", 0]);
});

it("exits with its code when the reader is gone", () => {
  const command = `(process.stdout.on("error", () => {}), process.stdout.write("x".repeat(3_000_000)), Promise.resolve(3))`;
  const argv = [
    "-c",
    `{ "$0" -e "$1"; echo $? >&2; } | head -c 1`,
    process.execPath,
    program.replace("COMMAND", command),
  ];
  const { stderr } = spawnSync("sh", argv, { timeout: 20_000 });
  expect(String(stderr).trim()).toBe("3");
});
