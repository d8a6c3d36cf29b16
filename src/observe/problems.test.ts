// Which Problems are known, from every source.
import { expect, it } from "vitest";
import type { Problem } from "../model/problem.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { keepProblems } from "./problems.ts";

const odd: Problem = { kind: "wrong-type", object: "Service shop/odd", field: "spec", message: "is odd" };
const taken: Problem = {
  kind: "conflict",
  object: "Service shop/web",
  field: "nodePort",
  message: "is taken",
};

it("those of objects and of each family are reported together, each once, whenever they changed", () => {
  const { reported, arrive, conflicts } = setUp();
  const first = [odd];
  arrive(first);
  arrive(first);
  conflicts("ipv4", [taken]);
  conflicts("ipv6", [{ ...taken }]);
  expect(reported).toEqual([[odd], [odd, taken], [odd, taken]]);
});

it("one that a family is rid of stays as long as the other has it", () => {
  const { reported, conflicts, all } = setUp();
  conflicts("ipv4", [taken]);
  conflicts("ipv6", [taken]);
  conflicts("ipv4", []);
  expect(all()).toEqual([taken]);
  conflicts("ipv6", []);
  expect(reported.at(-1)).toEqual([]);
});

function setUp() {
  const reported: (readonly Problem[])[] = [];
  const { arrived, conflicts, all } = keepProblems((problems) => reported.push(problems));
  const arrive = (problems: readonly Problem[]) => arrived({ problems } as unknown as Snapshot);
  return { reported, arrive, conflicts, all };
}
