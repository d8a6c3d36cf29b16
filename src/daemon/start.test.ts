// What the kernel's settings mean at the start.
import { expect, it } from "vitest";
import { isTcpLiberal } from "./start.ts";

it.each([
  ["1", true],
  ["3", true],
  ["0", false],
  ["", false],
])("10/17 nf_conntrack_tcp_be_liberal of %j: liberal is %s", (value, liberal) => {
  expect(isTcpLiberal(() => value)).toBe(liberal);
});
