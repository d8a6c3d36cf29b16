// Which steps of the paths through the kernel are beside which arrow.
import { expect, it } from "vitest";
import type { Walk } from "../../modes/mode.ts";
import { arrowsOf } from "./arrows.ts";

const forward = (address: string, ...steps: readonly string[]): Walk => ({
  outcome: { kind: "forward", backend: { address, port: 8080 }, masquerade: false },
  steps,
});

it("steps that all paths share lead to the Service, the others to their endpoint", () => {
  const view = arrowsOf([
    forward("10.0.1.1", "a", "b", "c { 0 : 10.0.1.1 . 8080 }", "masquerade"),
    forward("10.0.1.2", "a", "b", "c { 1 : 10.0.1.2 . 8080 }", "masquerade"),
  ]);
  expect(view).toEqual({
    service: ["a", "b"],
    endpoints: [
      { endpoint: "10.0.1.1:8080", steps: ["c { 0 : 10.0.1.1 . 8080 }", "masquerade"] },
      { endpoint: "10.0.1.2:8080", steps: ["c { 1 : 10.0.1.2 . 8080 }", "masquerade"] },
    ],
    more: 0,
  });
});

it.each([
  ["10.0.1.1", "dnat to 10.0.1.1:8080"],
  ["fd00::1", "dnat to [fd00::1]:8080"],
])("of the only endpoint, steps from the one that names it: %s", (address, named) => {
  const { service, endpoints } = arrowsOf([
    forward(address, "ip daddr 10.0.1.10 fd00::1f", named, "masquerade"),
  ]);
  expect(service).toEqual(["ip daddr 10.0.1.10 fd00::1f"]);
  expect(endpoints[0]!.steps).toEqual([named, "masquerade"]);
});

it("a packet that is not forwarded has one arrow, and one without rules has none", () => {
  const reject: Walk = { outcome: { kind: "reject" }, steps: ["a", "reject"] };
  expect(arrowsOf([reject])).toEqual({ service: ["a", "reject"], endpoints: [], more: 0 });
  expect(arrowsOf([])).toEqual({ service: [], endpoints: [], more: 0 });
});

it("has the first fifty of many endpoints", () => {
  const walks = Array.from({ length: 60 }, (_, i) => forward(`10.0.2.${i}`, "a", `b 10.0.2.${i}`));
  const { endpoints, more } = arrowsOf(walks);
  expect([endpoints.length, more]).toEqual([50, 10]);
});
