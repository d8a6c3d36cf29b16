// The tutorial is true: every command in docs/tutorial.md is run, and prints what the page says.
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { runLine } from "../../playground/commands.ts";
import { playgroundFor, reasonToSkipPlayground } from "./ground.ts";

const root = join(import.meta.dirname, "..", "..");
const reason = existsSync("/usr/bin/kubectl") ? reasonToSkipPlayground() : "kubectl is not installed";

type Step = { readonly where: "console" | "playground"; readonly command: string; readonly output: string[] };

const place = playgroundFor("nftables", reason);

it("prints what docs/tutorial.md says", async () => {
  for (const { where, command, output } of stepsOf(readFileSync(join(root, "docs/tutorial.md"), "utf8"))) {
    const lines = where === "playground" ? await runLine(place.playground, command) : await run(command);
    const wrong =
      lines.length !== output.length || lines.some((line, i) => !patternOf(output[i]!).test(line));
    // When a line differs, all of them are shown; else the page's own placeholders would hide the rest.
    expect({ command, lines: wrong ? lines : output }).toEqual({ command, lines: output });
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

/** Commands and the lines below each, of the blocks that are marked as run. */
function stepsOf(page: string): Step[] {
  return [...page.matchAll(/^```(console|playground)\n([\s\S]*?)^```/gm)].flatMap(([, where, body = ""]) => {
    const steps: Step[] = [];
    for (const line of body.trimEnd().split("\n")) {
      const command = /^[$>] (.*)/.exec(line)?.[1];
      if (command !== undefined) steps.push({ where: where as Step["where"], command, output: [] });
      else steps.at(-1)?.output.push(line);
    }
    return steps;
  });
}

/** Columns are as wide as what stands in them: an age of 9s, or 10s. */
function patternOf(line: string): RegExp {
  const literal = line.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*").replaceAll(/ {2,}/g, " +")}$`);
}
