// Tests of scheduling: which nodes a Pod can run on, and the reason why not.
import { expect, it } from "vitest";
import type { ApiObject } from "../api/objects/object.ts";
import { whyUnschedulable } from "./placement.ts";

const object = (spec: object, labels: Record<string, string> = {}): ApiObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "node-a", uid: "", resourceVersion: "", creationTimestamp: "", labels },
  spec,
});
const tainted = object({ taints: [{ key: "busy", value: "yes", effect: "NoSchedule" }] });

it.each([
  ["any node", object({}), object({}), null],
  ["a node that is cordoned", object({}), object({ unschedulable: true }), "node-a is cordoned"],
  ["a node with its label", object({ nodeSelector: { disk: "ssd" } }), object({}, { disk: "ssd" }), null],
  [
    "a node without its label",
    object({ nodeSelector: { disk: "ssd" } }),
    object({}, { disk: "hdd" }),
    "node-a does not have the label disk=ssd",
  ],
  ["a node with a taint", object({}), tainted, "node-a has the taint busy, which it does not tolerate"],
  ["a taint it tolerates", object({ tolerations: [{ key: "busy", operator: "Exists" }] }), tainted, null],
  ["any taint", object({ tolerations: [{ operator: "Exists" }] }), tainted, null],
  [
    "a taint of another value",
    object({ tolerations: [{ key: "busy", value: "no" }] }),
    tainted,
    "node-a has the taint busy, which it does not tolerate",
  ],
])("a Pod and %s", (_, pod, node, reason) => {
  expect(whyUnschedulable(pod, node)).toBe(reason);
});
