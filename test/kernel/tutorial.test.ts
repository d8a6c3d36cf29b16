// Runs every command of docs/tutorial.md and compares the output.
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { it } from "vitest";
import { runLine } from "../../playground/commands.ts";
import { stepsOf } from "../support/steps.ts";
import { playgroundFor, reasonToSkipPlayground } from "./ground.ts";
import { expectTranscript } from "./transcript.ts";

const root = join(import.meta.dirname, "..", "..");
const reason = existsSync("/usr/bin/kubectl") ? reasonToSkipPlayground() : "kubectl is not installed";

const place = playgroundFor("nftables", reason);

it("prints the output of docs/tutorial.md", async () => {
  const page = readFileSync(join(root, "docs/tutorial.md"), "utf8");
  for (const { where, command, output } of stepsOf(page, "console", "playground")) {
    const lines = where === "playground" ? await runLine(place.playground, command) : await run(command);
    expectTranscript(command, lines, output);
  }
});

async function run(command: string): Promise<string[]> {
  const here = command.replace("--source=playground", `--source=playground:${process.pid}`);
  const { stdout } = await promisify(execFile)("sh", ["-c", here], {
    cwd: root,
    env: {
      ...process.env,
      PATH: `${join(root, "bin")}:${process.env.PATH}`,
      KUBECONFIG: place.playground.kubeconfig,
      HOME: join(tmpdir(), "turnout-kubectl"),
    },
  });
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.trimEnd());
}
