// Completion of `kubectl turnout`, on a kubectl that prints names.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const bin = join(import.meta.dirname, "..", "bin");

/** Prints names as `kubectl get --output=name` does, and writes its arguments to the file calls. */
const kubectl = `#!/bin/sh
echo "$*" >>"$FAKE/calls"
case "$*" in
  *get*pods*--namespace=shop*) printf 'pod/%s\\n' web-1 web-2 ;;
  *get*pods*) printf 'pod/%s\\n' api-1 ;;
  *get*nodes*) printf 'node/%s\\n' node-a node-b ;;
  *get*services*) printf 'service/%s\\n' cart web ;;
  *get*namespaces*) printf 'namespace/%s\\n' default shop '$(touch x)' ;;
esac
`;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-completion-"));
  writeFileSync(join(folder, "kubectl"), kubectl, { mode: 0o755 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** The candidates for the last word. The directive that follows them keeps the shell from adding names of files. */
function complete(...words: readonly string[]): string[] {
  const { stdout, stderr, status } = spawnSync("dash", [join(bin, "kubectl_complete-turnout"), ...words], {
    encoding: "utf8",
    env: { PATH: `${folder}:${process.env.PATH}`, FAKE: folder },
  });
  expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
  const lines = stdout.trimEnd().split("\n");
  expect(lines.pop()).toBe(":4");
  return lines;
}

describe("completion", () => {
  it("of a command: all that the help lists", () => {
    const help = spawnSync("dash", [join(bin, "kubectl-turnout"), "help"], { encoding: "utf8" }).stdout;
    const listed = [...help.matchAll(/^ {2}kubectl turnout (\w+)/gm)].map(([, name]) => name);
    expect(complete("")).toEqual([...listed, "help"]);
    expect(complete()).toEqual(complete(""));
    expect(complete("d")).toEqual(["diff", "doctor"]);
  });

  it.each<[string[], string[]]>([
    [
      ["explain", ""],
      ["outside", "pod/api-1", "node/node-a", "node/node-b"],
    ],
    [
      ["-n", "shop", "explain", "pod/"],
      ["pod/web-1", "pod/web-2"],
    ],
    [["explain", "--namespace=shop", "pod/web-2"], ["pod/web-2"]],
    [
      ["explain", "web-1", ""],
      ["svc/cart", "svc/web"],
    ],
    [["explain", "-nshop", "web-1", "svc/w"], ["svc/web"]],
    [["explain", "web-1", "web", ""], []],
    [
      ["status", "--node", ""],
      ["node-a", "node-b"],
    ],
    [["status", "--node=node-b"], ["--node=node-b"]],
    [
      ["explain", "-n", ""],
      ["default", "shop"],
    ],
    [["explain", "--namespace=s"], ["--namespace=shop"]],
    [
      ["status", "-o", ""],
      ["text", "json"],
    ],
    [["--as", "me", "--server", "https://a", "st"], ["status"]],
    [["status", "--tim"], ["--timeout="]],
    [["status", ""], []],
  ])("of %j", (words, candidates) => {
    expect(complete(...words)).toEqual(candidates);
  });

  it("uses the connection of the command line", () => {
    complete("--context", "blue", "--kubeconfig=/a", "explain", "web-1", "");
    const calls = readFileSync(join(folder, "calls"), "utf8");
    expect(calls).toBe("--request-timeout=2s --context=blue --kubeconfig=/a get --output=name services\n");
  });
});
