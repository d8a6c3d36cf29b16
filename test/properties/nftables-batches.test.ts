// A change in batches: it leads where the whole change does, and in between no packet reaches a half-built Service.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyInMemory } from "../../src/host/nftables/memory.ts";
import { endpointKey } from "../../src/model/snapshot.ts";
import { compile } from "../../src/modes/nftables/compile.ts";
import { mostSharedSlots } from "../../src/modes/nftables/large.ts";
import { walkNftables } from "../../src/modes/nftables/walk.ts";
import { after, batches } from "../../src/plan/nftables/batches.ts";
import { diff } from "../../src/plan/nftables/diff.ts";
import { Growth } from "../../src/plan/nftables/growth.ts";
import { settled, unfold, unfoldChanged } from "../../src/plan/nftables/plan.ts";
import { printElements } from "../../src/plan/nftables/print.ts";
import { isSlotMap, type NftPlan, type NftTable } from "../../src/plan/nftables/types.ts";
import type { Packet } from "../../src/routing/decide.ts";
import { route } from "../../src/routing/routes.ts";
import { packet, servicePort, settings, snapshotOf } from "../clusters.ts";

const tiny = { whole: 0, batch: 1 };

describe.each(["ipv4", "ipv6"] as const)("a change in batches, %s", (family) => {
  const ports = fc.array(servicePort(family), { minLength: 1, maxLength: 6 });
  const change = fc.record({
    settings: settings(family),
    before: fc.option(ports, { nil: null, freq: 4 }),
    later: ports,
    limit: fc.constantFrom(mostSharedSlots, 4),
    packets: fc.array(packet(family), { minLength: 5, maxLength: 20 }),
  });

  it("gives every packet its old result or its new one, after each batch", () => {
    fc.assert(
      fc.property(change, ({ settings, before, later, packets, limit }) => {
        const first = route(null, snapshotOf(before ?? [], family), settings);
        const keys = new Set([...(before ?? []), ...later].map(({ key }) => key));
        const old = compile(null, first, limit);
        const want = compile(old, route(first, snapshotOf(later, family, keys), settings), limit);
        const known = before === null ? null : old;
        const have = known === null ? null : unfold(known);
        let applied: NftPlan | null = known;
        let host = have;
        const results = (table: NftTable | null, each: Packet) =>
          walked(table, each, settings.localAddresses);
        const growth = new Growth(known, want);
        for (const part of batches(known, want, want.changed, tiny)) {
          const plan: NftPlan = after(applied, want, part);
          const tables: { have: NftTable | null; want: NftTable } =
            applied === null ? { have: null, want: unfold(plan) } : unfoldChanged(applied, plan, part.keys);
          const patch = part.grows ? growth.patch(part.keys) : diff(tables.have, tables.want);
          host = applyInMemory(host, patch, want.foundation.family);
          applied = settled(plan, part.keys, tables.have);
          expect(diff(host, unfold(applied))).toEqual([]);
          expect(slotsOf(host!)).toEqual(slotsOf(unfold(applied)));
          for (const each of packets) {
            // Before the first table, an address that is not served yet is as good as an unknown one.
            const possible = [
              ...(have === null ? [["pass"], ["drop"]] : [results(have, each)]),
              results(unfold(want), each),
            ];
            expect(possible).toContainEqual(results(host, each));
          }
        }
        expect(diff(host, unfold(want))).toEqual([]);
        expect(diff(host, unfold(applied!))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

/** Which slot holds which Backend. */
function slotsOf(table: NftTable): string[] {
  return [...table.sets.values()]
    .filter(isSlotMap)
    .flatMap((set) => printElements(set, table).map((line) => `${set.name} ${line}`))
    .sort();
}

function walked(table: NftTable | null, each: Packet, localAddresses: readonly string[]): string[] {
  if (table === null) return ["pass"];
  return walkNftables(table, each, { localAddresses, podInterface: "br0" })
    .map(({ outcome }) =>
      outcome.kind === "forward"
        ? `${endpointKey(outcome.backend)} ${outcome.masquerade ? "masquerade" : "keep"}`
        : outcome.kind,
    )
    .sort();
}
