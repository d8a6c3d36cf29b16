// What packets to addresses without a Service port meet, when other Routes were asked before.
import { expect, it } from "vitest";
import { ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import { decideServed } from "../modes/ipvs/decide.ts";
import { nftablesBehavior } from "../modes/nftables/behavior.ts";
import { decide, type Packet } from "./decide.ts";
import type { Routes } from "./routes.ts";

const [one, other] = ["172.30.0.1", "172.30.0.9"];
const servedAt = (clusterIP: string, externalIP: string) =>
  servicePort("shop/web", { clusterIP, externalIPs: [externalIP] });

function to(address: string): Packet {
  const from = { origin: "pod", address: "10.180.0.1" } as const;
  return { from, to: { address, protocol: "tcp", port: 81 } };
}

it("an address that has become the cluster IP is one, though the same Service claims the same addresses", () => {
  const before = routed([servedAt(one, other)]);
  const outcome = (routes: Routes, address: string) =>
    decide(routes, nftablesBehavior, to(address)).outcome.kind;
  expect([one, other].map((address) => outcome(before, address))).toEqual(["reject", "pass"]);
  const after = routed([servedAt(other, one)], ipv4Settings, before);
  expect(after.claims).toBe(before.claims);
  expect([one, other].map((address) => outcome(after, address))).toEqual(["pass", "reject"]);
});

it("in ipvs mode an external IP ends on this node only while they are allowed", () => {
  const port = servedAt(one, "198.51.100.7");
  const allowed = routed([port]);
  const denied = routed([port], { ...ipv4Settings, externalIPsAllowed: false });
  const outcome = (routes: Routes) => decideServed(routes, to("198.51.100.7")).outcome.kind;
  expect(outcome(allowed)).toBe("reject");
  expect(outcome({ ...denied, servicePorts: allowed.servicePorts })).toBe("pass");
});
