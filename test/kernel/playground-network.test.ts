// Attaching pods: an address with a stale route, and a pod that cannot be attached.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { nodePlaces, podAddresses } from "../../playground/net/layout.ts";
import { Network } from "../../playground/net/network.ts";
import { namespaceName, namespacePath } from "../../src/inspect/playgrounds.ts";
import { reasonToSkipPlayground } from "./ground.ts";

const reason = reasonToSkipPlayground();
const node = nodePlaces[0]!;
let network: Network;
beforeEach(async ({ skip }) => {
  skip(reason !== null, reason ?? "");
  network = await Network.open();
});
afterEach(() => network?.close());

const onNode = (...args: readonly string[]) =>
  execFileSync("ip", ["-n", namespaceName(node.name), ...args], { encoding: "utf8" });

it("reuses an address while the link of its last pod still exists", () => {
  const { ipv4, ipv6 } = podAddresses(node, 1);
  onNode("link", "add", "last", "type", "veth", "peer", "name", "far");
  for (const end of ["last", "far"]) onNode("link", "set", end, "up");
  for (const address of [ipv4, ipv6]) onNode("route", "add", address, "dev", "last");
  expect(network.attach("shop.web-1", "web-1", node, []).addresses).toEqual({ ipv4, ipv6 });
  for (const address of [ipv4, ipv6]) expect(onNode("route", "get", address)).toContain("dev pod1 ");
  onNode("link", "delete", "last");
  for (const address of [ipv4, ipv6]) expect(onNode("route", "get", address)).toContain("dev pod1 ");
});

it("cleans up after a failed attach, which can be retried", () => {
  onNode("link", "add", "pod1", "type", "veth", "peer", "name", "far");
  const attach = () => network.attach("shop.web-1", "web-1", node, []);
  expect(attach).toThrow(/cannot create the network: .*File exists/);
  expect(existsSync(namespacePath(namespaceName("shop.web-1")))).toBe(false);
  expect(attach().node).toBe(node);
});
