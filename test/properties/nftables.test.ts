// Properties of the nftables mode on generated clusters: the Plan agrees with decide(), and small steps lead where one
// big step does.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyInMemory } from "../../src/host/nftables/memory.ts";
import type { ServicePort } from "../../src/model/snapshot.ts";
import { compile, compileTable } from "../../src/modes/nftables/compile.ts";
import { mostSharedSlots } from "../../src/modes/nftables/large.ts";
import { walkNftables } from "../../src/modes/nftables/walk.ts";
import { countOperations, diff } from "../../src/plan/nftables/diff.ts";
import { onto, settled, unfold, unfoldChanged } from "../../src/plan/nftables/plan.ts";
import { printElements } from "../../src/plan/nftables/print.ts";
import type { NftPlan, NftTable } from "../../src/plan/nftables/types.ts";
import type { Packet } from "../../src/routing/decide.ts";
import { type Routes, route } from "../../src/routing/routes.ts";
import { servicePort, settings, snapshotOf } from "../clusters.ts";
import { change, expectDecidedResults, generatedCluster, type WalkedMode } from "./common.ts";

const walkedWith = (limit: number) =>
  ({
    mode: "nftables",
    walker: (routes: Routes) => {
      const table = compileTable(routes, limit);
      return (packet: Packet, around: Parameters<typeof walkNftables>[2]) =>
        walkNftables(table, packet, around);
    },
  }) satisfies WalkedMode;

/** With the second limit generated ServicePorts are large, or cross the limit in both directions. */
const limits = [mostSharedSlots, 4];
const families = ["ipv4", "ipv6"] as const;
const cases = families.flatMap((family) => limits.map((limit) => ({ family, limit })));

describe.each(cases)("nftables mode, $family, large from $limit slots on", ({ family, limit }) => {
  const state = generatedCluster(family);
  const runs = limit === mostSharedSlots ? 1 : 0.5;

  it("gives every packet the result of decide()", () =>
    expectDecidedResults(family, walkedWith(limit), 600 * runs));

  const history = fc.record({
    settings: settings(family),
    steps: fc.array(fc.array(fc.tuple(servicePort(family), fc.boolean()), { minLength: 1, maxLength: 3 }), {
      minLength: 1,
      maxLength: 6,
    }),
  });

  it("reaches step by step what it builds from scratch, and the host with it", () => {
    fc.assert(
      fc.property(history, ({ settings, steps }) => {
        const ports = new Map<string, ServicePort>();
        let routes: Routes | null = null;
        let want: NftPlan | null = null;
        let applied: NftPlan | null = null;
        let host: NftTable | null = null;
        for (const step of steps) {
          const changed = change(ports, step);
          const snapshot = snapshotOf([...ports.values()], family, changed);
          routes = route(routes, snapshot, settings);
          want = compile(want, routes, limit);
          const scratch = compile(null, route(null, snapshot, settings), limit);
          expect(canonical(unfold(want))).toEqual(canonical(unfold(scratch)));
          expect(compileTable(routes, limit)).toEqual(unfold(compile(null, routes, limit)));

          const tables: { have: NftTable | null; want: NftTable } =
            applied === null
              ? { have: null, want: unfold(want) }
              : unfoldChanged(applied, want, want.changed);
          host = applyInMemory(host, diff(tables.have, tables.want), want.foundation.family);
          applied =
            applied === null
              ? settled(want, want.fragments.keys(), tables.have)
              : settled(onto(applied, want, want.changed), want.changed, tables.have);
          expect(exact(host!)).toEqual(exact(unfold(applied)));
          expect(canonical(host!)).toEqual(canonical(unfold(scratch)));
          expect(diff(host, unfold(scratch))).toEqual([]);
        }
      }),
      { numRuns: 250 * runs },
    );
  });

  it("gets from any table to any other", () => {
    fc.assert(
      fc.property(state, state, (one, other) => {
        const tables = [one, other].map(({ ports, settings }) =>
          unfold(compile(null, route(null, snapshotOf(ports, family), settings), limit)),
        );
        const [have, want] = tables as [NftTable, NftTable];
        const reached = applyInMemory(have, diff(have, want), want.family);
        expect(canonical(reached!)).toEqual(canonical(want));
        expect(countOperations(diff(want, want))).toBe(0);
      }),
      { numRuns: 200 * runs },
    );
  });
});

/** A table as comparable data; which slot holds which Backend does not count. */
function canonical(table: NftTable): unknown {
  const withoutSlots = (line: string) => line.replace(/(^| \. )\d+( counter [^:]*)? : /, "$2 : ");
  return describeTable(table, (lines) => lines.map(withoutSlots).sort());
}

function exact(table: NftTable): unknown {
  return describeTable(table, (lines) => lines);
}

function describeTable(table: NftTable, arrangement: (lines: string[]) => string[]): unknown {
  return {
    sets: [...table.sets.values()].sort(byName).map((set) => ({
      ...set,
      elements:
        set.key.at(-1) === "slot" ? arrangement(printElements(set, table)) : printElements(set, table),
    })),
    counters: [...table.counters].sort(),
    chains: [...table.chains.values()].sort(byName),
  };
}

function byName(a: { name: string }, b: { name: string }): number {
  return a.name < b.name ? -1 : 1;
}
