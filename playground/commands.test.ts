// Tests of the command parser: invalid input is answered with one line that shows the correct usage.
import { expect, it } from "vitest";
import { runLine } from "./commands.ts";
import type { Playground } from "./playground.ts";

it.each([
  ["snd web-1 svc/shop/web", 'unknown command "snd"; did you mean send?'],
  ["frobnicate", 'unknown command "frobnicate"; commands: send, explain, flows, scale'],
  ["constructor", 'unknown command "constructor"; commands:'],
  ["send web-1", "FROM and TO are required, for example: send web-1 svc/shop/cart:80"],
  ["send a b 101", "expected a number from 1 to 100"],
  ["kill", "a name is required, for example: kill web-1"],
  ["quit now", 'unexpected argument "now"; usage: quit'],
  ["help me", 'unknown command "me"; commands: send'],
  ["kill a b", 'unexpected argument "b"; usage: kill POD'],
])("%s", async (line, answer) => {
  const lines = await runLine({} as Playground, line);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(answer);
});

it("help COMMAND prints the details and the syntax of FROM and TO", async () => {
  const lines = await runLine({} as Playground, "help send");
  expect(lines[0]).toMatch(/^send FROM TO \[TIMES\] +send requests/);
  expect(lines).toContain("for example: send web-1 svc/shop/cart:80 5");
  expect(lines.join("\n")).toMatch(/^FROM: .*\nTO: +web/m);
});

it("prints each answer as soon as it arrives", async () => {
  const printed: string[] = [];
  const counts: number[] = [];
  const send = async (from: string, to: string) => {
    counts.push(printed.length);
    return { from, to, result: { kind: "rejected", node: "node-a", ms: 1 } };
  };
  const lines = await runLine({ send } as unknown as Playground, "send a b 3", (line) => printed.push(line));
  expect(counts).toEqual([0, 1, 2]);
  expect(printed).toEqual(Array(3).fill("a → b: rejected by the proxy of node-a; 1 ms"));
  expect(lines).toEqual(printed);
});
