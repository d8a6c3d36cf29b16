// What clean-up counts, for the log.
import { expect, it } from "vitest";
import { parseSave } from "../plan/iptables/parse.ts";
import { removal } from "./iptables/removal.ts";
import { nothingRemoved, removedOfIpvs, removedRules, sumRemoved } from "./removed.ts";

const server = { address: "172.30.0.1", port: 80, protocol: "tcp" } as const;

it("user/5: counts jumps and chains of all tables", () => {
  const held = parseSave(
    '*nat\n:OUTPUT ACCEPT [0:0]\n:KUBE-SERVICES - [0:0]\n:KUBE-SVC-A - [0:0]\n-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES\nCOMMIT\n',
    "ipv4",
  );
  expect(removedRules(removal(held))).toEqual({ jumps: 1, chains: 2 });
});

it("user/5: counts virtual servers, sets, and the addresses that go with the link or one by one", () => {
  const addresses = new Set(["172.30.0.1", "172.30.0.2"]);
  const common = [
    { kind: "delete server", server },
    { kind: "destroy set", set: "KUBE-CLUSTER-IP" },
  ] as const;
  expect(removedOfIpvs({ addresses }, [...common, { kind: "delete link" }])).toEqual({
    virtualServers: 1,
    addresses: 2,
    sets: 1,
  });
  const one = { kind: "delete address", address: "172.30.0.1" } as const;
  expect(removedOfIpvs({ addresses }, [...common, one])).toMatchObject({ addresses: 1 });
});

it("user/5: sums families, leaves out what there was none of, and detects when there was nothing", () => {
  expect(sumRemoved([{ jumps: 1, chains: 0 }, { jumps: 2 }])).toEqual({ jumps: 3 });
  expect([nothingRemoved(sumRemoved([{ chains: 0 }])), nothingRemoved({ tables: 1 })]).toEqual([true, false]);
});
