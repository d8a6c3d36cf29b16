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
  ["kill a b", 'cannot use "b"; the command is: kill POD'],
])("%s", async (line, answer) => {
  const lines = await runLine({} as Playground, line);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(answer);
});
