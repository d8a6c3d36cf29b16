// Properties of the iptables mode on generated clusters: the Plan agrees with decide(), and small steps lead where one
// big step does.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FamilySettings } from "../../src/config/resolve/settings.ts";
import { applyInMemory, freshTables } from "../../src/host/iptables/memory.ts";
import type { Endpoint, ServicePort } from "../../src/model/snapshot.ts";
import { compile } from "../../src/modes/iptables/compile.ts";
import { rulesetOf, rulesetOnHost, walkIptables } from "../../src/modes/iptables/walk.ts";
import { adopt } from "../../src/plan/iptables/adopt.ts";
import { diff, isEmptyPatch } from "../../src/plan/iptables/diff.ts";
import { print } from "../../src/plan/iptables/print.ts";
import { stage } from "../../src/plan/iptables/stage.ts";
import type { HostTables, IptablesPlan } from "../../src/plan/iptables/types.ts";
import type { Packet } from "../../src/routing/decide.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { packet, servicePort, settings, snapshotOf } from "../clusters.ts";
import {
  change,
  expectDecidedResults,
  generatedCluster,
  generatedHistory,
  type WalkedMode,
} from "./common.ts";

const anEndpoint: Endpoint = {
  address: "10.0.1.1",
  port: 0,
  state: "ready",
  serving: true,
  nodeName: "node-a",
  zoneHints: [],
  nodeHints: [],
};

const counters = { invalidDropped: false, localhostNodePorts: true };

const walked = {
  mode: "iptables",
  walker: (routes: Routes) => {
    const rules = rulesetOf(compile(null, routes, counters));
    return (packet: Packet, around: Parameters<typeof walkIptables>[2]) =>
      walkIptables(rules, packet, around);
  },
} satisfies WalkedMode;

describe.each(["ipv4", "ipv6"] as const)("iptables mode, %s", (family) => {
  const state = generatedCluster(family);

  it("gives every packet the result of decide()", () => expectDecidedResults(family, walked, 400));

  it("10/61 reaches step by step what it builds from scratch, and the host with it", () => {
    fc.assert(
      fc.property(generatedHistory(family), ({ settings, steps }) => {
        const ports = new Map<string, ServicePort>();
        let routes: Routes | null = null;
        let applied: IptablesPlan | null = null;
        let host: HostTables = freshTables(family);
        for (const { changes, setting } of steps) {
          const changed = change(ports, changes);
          const now = settings[setting]!;
          const snapshot = snapshotOf([...ports.values()], family, changed);
          routes = route(routes, snapshot, now);
          const want = compile(applied, routes, counters);
          const scratch = compile(null, route(null, snapshot, now), counters);
          expect(print(want)).toBe(print(scratch));
          expect(want.totals).toEqual(scratch.totals);

          host = applyInMemory(
            host,
            applied === null ? adopt(host, want) : diff(applied, want, want.changed),
          );
          applied = want;
          expect(adopt(host, scratch).steps).toEqual([]);
          expect(isEmptyPatch(diff(want, scratch, scratch.fragments.keys()))).toBe(true);
        }
      }),
      { numRuns: 120 },
    );
  });

  it("renews a shared chain as a whole when much of it goes", () => {
    const port = (i: number, served: boolean) => ({
      ...fc.sample(servicePort(family), { seed: i, numRuns: 1 })[0]!,
      key: `shop/s${i}/tcp/`,
      service: `shop/s${i}`,
      clusterIP: family === "ipv4" ? `172.30.5.${i}` : `fd30::5:${i}`,
      endpoints: served ? [{ ...anEndpoint, port: 1000 + i }] : [],
    });
    const [some] = fc.sample(settings(family), 1) as [FamilySettings];
    const all = Array.from({ length: 120 }, (_, i) => i);
    const first = snapshotOf(
      all.map((i) => port(i, true)),
      family,
    );
    const before = route(null, first, some);
    const have = compile(null, before, counters);
    const next = all.map((i) => port(i, i % 2 === 0));
    const changed = next.map(({ key }) => key);
    const want = compile(have, route(before, snapshotOf(next, family, changed), some), counters);
    const there = diff(have, want, want.changed);
    expect(there.steps.some(({ write }) => write.some(({ name }) => name === "KUBE-SERVICES"))).toBe(true);
    const host = applyInMemory(freshTables(family), adopt(freshTables(family), have));
    const reached = applyInMemory(host, there);
    expect(adopt(reached, want).steps).toEqual([]);
    const back = diff(want, have, want.changed);
    expect(adopt(applyInMemory(reached, back), have).steps).toEqual([]);
  });

  it("leads from any tables to any others, in layers or in one step, and leaves foreign rules alone", () => {
    fc.assert(
      fc.property(state, state, (one, other) => {
        const [old, want] = [one, other].map(({ ports, settings }) =>
          compile(null, route(null, snapshotOf(ports, family), settings), counters),
        ) as [IptablesPlan, IptablesPlan];
        const fresh = withForeignRules(freshTables(family));
        const have = applyInMemory(fresh, adopt(fresh, old));
        const reached = applyInMemory(have, adopt(have, want));
        expect(adopt(reached, want).steps).toEqual([]);
        expect(applyInMemory(have, stage(adopt(have, want)))).toEqual(reached);
        for (const [table, chain] of [
          ["nat", "FOREIGN"],
          ["filter", "FORWARD"],
        ] as const) {
          expect(reached.tables.get(table)!.get(chain)).toContain("-m foreign --rule");
        }
      }),
      { numRuns: 120 },
    );
  });

  it("reads back from a host what it means", () => {
    fc.assert(
      fc.property(state, packet(family), ({ ports, settings }, each) => {
        const plan = compile(null, route(null, snapshotOf(ports, family), settings), counters);
        const host = applyInMemory(freshTables(family), adopt(freshTables(family), plan));
        const around = { localAddresses: settings.localAddresses, podInterface: "br0" };
        expect(walkIptables(rulesetOnHost(host), each, around)).toEqual(
          walkIptables(rulesetOf(plan), each, around),
        );
      }),
      { numRuns: 100 },
    );
  });
});

function withForeignRules({ family, tables }: HostTables): HostTables {
  const copy = new Map(tables);
  copy.set("nat", new Map(tables.get("nat")).set("FOREIGN", ["-m foreign --rule"]).set("KUBE-FOO", []));
  copy.set("filter", new Map(tables.get("filter")).set("FORWARD", ["-m foreign --rule"]));
  return { family, tables: copy };
}
