// Runs every command of docs/tutorial.md and compares the output.
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

it("prints the output of docs/tutorial.md", async () => {
  for (const { where, command, output } of stepsOf(readFileSync(join(root, "docs/tutorial.md"), "utf8"))) {
    const lines = where === "playground" ? await runLine(place.playground, command) : await run(command);
    const wrong =
      lines.length !== output.length || lines.some((line, i) => !patternOf(output[i]!).test(line));
    // Compare all lines when one differs; placeholders would hide the others.
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

/** The commands of the `console` and `playground` blocks, with their output. */
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

/** Column widths vary with the content, such as an age of 9s or 10s. */
function patternOf(line: string): RegExp {
  const literal = line.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${literal.join(".*").replaceAll(/ {2,}/g, " +")}$`);
}
