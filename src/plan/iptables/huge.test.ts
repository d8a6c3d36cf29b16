// A Service so large that its rules do not fit on the stack as arguments of one call.
import { expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../test/support/routed.ts";
import { compile } from "../../modes/iptables/compile.ts";
import { countOperations, diff } from "./diff.ts";

const many = 130_000;
const address = (first: number, i: number) => `${first}.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;

it.each([
  ["endpoints", { endpoints: Array.from({ length: many }, (_, i) => endpoint(`${address(10, i)}:80`)) }],
  [
    "external IPs",
    {
      externalIPs: Array.from({ length: many }, (_, i) => address(198, i)),
      endpoints: [endpoint("10.0.0.1:80")],
    },
  ],
])("security/2: a Service with 130,000 %s comes and goes, and each rule is compared once", (_, more) => {
  const counters = { invalidDropped: true, localhostNodePorts: true };
  const before = routed([]);
  const during = routed([servicePort("shop/web", more)], ipv4Settings, before);
  const none = compile(null, before, counters);
  const some = compile(none, during, counters);
  const keys = [...during.ports.keys()];
  expect(countOperations(diff(none, some, keys))).toBeGreaterThan(many);
  expect(countOperations(diff(some, none, keys))).toBeGreaterThan(0);
});
