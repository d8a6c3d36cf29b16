// Tests of what is typed at the prompt before anything is done: mistakes are answered in words.
import { expect, it } from "vitest";
import { runLine } from "./commands.ts";
import type { Playground } from "./playground.ts";

it.each([
  ["snd web-1 svc/shop/web", 'there is no command "snd"; did you mean send?'],
  ["frobnicate", 'there is no command "frobnicate"; there are send, explain, scale'],
  ["constructor", 'there is no command "constructor"; there are'],
  ["send web-1", "say from where to where, for example: send web-1 svc/shop/cart:80"],
  ["send a b 101", "say a number from 1 to 100"],
  ["kill", "say which one, for example: kill web-1"],
  ["quit now", 'cannot use "now"; the command is: quit'],
  ["help me", 'there is no command "me"; there are send'],
  ["kill a b", 'cannot use "b"; the command is: kill POD'],
])("%s", async (line, answer) => {
  const lines = await runLine({} as Playground, line);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(answer);
});

it("help tells more of one command, and how packets are named", async () => {
  const lines = await runLine({} as Playground, "help send");
  expect(lines[0]).toMatch(/^send FROM TO \[TIMES\] +requests/);
  expect(lines).toContain("for example: send web-1 svc/shop/cart:80 5");
  expect(lines.join("\n")).toMatch(/^FROM: .*\nTO: +svc/m);
});

it("answers are printed one by one, as they come", async () => {
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
