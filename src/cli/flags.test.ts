// The reader of command lines: every spelling of a flag, and flags that belong to another reader.
import { describe, expect, it } from "vitest";
import { type CommandSpec, readCommandLine, requestsHelp, splitFlags } from "./flags.ts";

const spec = {
  name: "try",
  summary: "",
  usage: [],
  args: [{ name: "WHAT", description: "" }],
  flags: [
    { name: "node", value: "NAME", example: "node-a", description: "" },
    { name: "live", description: "", aliases: ["alive"] },
    { name: "output", short: "o", value: "FORMAT", choices: ["text", "json"], description: "" },
  ],
  examples: ["turnout try this"],
} as const satisfies CommandSpec;

describe("a command line", () => {
  it.each([
    [["--node=a"], { node: "a" }],
    [["--node", "a"], { node: "a" }],
    [["-node", "a"], { node: "a" }],
    [["--node=a=b"], { node: "a=b" }],
    [["--node="], { node: "" }],
    [["--node", "-x"], { node: "-x" }],
    [["--node=a", "--node=b"], { node: "b" }],
    [["-ojson"], { output: "json" }],
    [["-o=json"], { output: "json" }],
    [["-o", "json"], { output: "json" }],
    [["-output=json"], { output: "json" }],
    [["--live"], { live: true }],
    [["--alive"], { live: true }],
  ])("%j sets flags", (argv, flags) => {
    expect(readCommandLine(spec, argv)).toEqual({ flags, args: [] });
  });

  it("takes everything after -- as arguments", () => {
    expect(readCommandLine(spec, ["--live", "--", "--node"])).toEqual({
      flags: { live: true },
      args: ["--node"],
    });
    expect([requestsHelp(["-h"]), requestsHelp(["--", "-h"])]).toEqual([true, false]);
  });

  it.each([
    [["--node"], "--node requires a value, for example --node=node-a"],
    [["--node", "--live"], "--node requires a value"],
    [["-o"], "-o requires a value, for example -o text"],
    [["--live=no"], "--live takes no value"],
    [["-o", "yaml"], '-o must be text or json, not "yaml"'],
    [["--nod=a"], 'unknown flag "--nod"; did you mean --node?'],
    [["-x"], 'unknown flag "-x"; see turnout try --help'],
    [["a", "b"], 'unexpected argument "b"; example: turnout try this'],
    [["a", "jsn"], 'unexpected argument "jsn"; did you mean -o json?'],
  ])("%j is refused", (argv, message) => {
    expect(() => readCommandLine(spec, argv)).toThrow(message);
  });
});

it("flags of another reader are left in order, with their values", () => {
  const argv = ["--config", "x", "--node", "a", "-v2", "--live", "-o=json", "rest", "--", "--node=b"];
  expect(splitFlags(spec.flags, argv)).toEqual({
    flags: { node: "a", live: true, output: "json" },
    rest: ["--config", "x", "-v2", "rest", "--", "--node=b"],
  });
});
