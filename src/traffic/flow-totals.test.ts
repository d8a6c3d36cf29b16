// Sums of packets and bytes: each byte once, whatever ends during a dump, and never less than before.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { FlowFacts, FlowView } from "../model/flow.ts";
import { FlowTotals } from "./flow-totals.ts";

type Counted = Pick<FlowView, "id" | "sourcePort" | "counters" | "state" | "status">;

const flow = (id: number, bytes: number, state: FlowFacts["state"] = "ESTABLISHED"): Counted => ({
  id,
  sourcePort: 40_000,
  state,
  status: 0,
  counters: { original: { packets: 1, bytes }, reply: { packets: 2, bytes: 10 * bytes } },
});
const web = ["shop/web/tcp/"];
const always = () => true;

function dump(totals: FlowTotals, flows: readonly Counted[], lost = false): boolean {
  totals.begin();
  for (const each of flows) totals.add(each, web);
  return totals.finish(always, lost);
}

describe("sums", () => {
  it("count from the first dump on", () => {
    const totals = new FlowTotals();
    dump(totals, [flow(1, 100)]);
    expect(totals.of(web[0]!)).toMatchObject({ active: 1, bytesIn: 0, bytesOut: 0 });
    dump(totals, [flow(1, 150), flow(2, 7)]);
    expect(totals.of(web[0]!)).toEqual({
      active: 2,
      packetsIn: 1,
      bytesIn: 57,
      packetsOut: 2,
      bytesOut: 570,
    });
  });

  it("include flows that started and ended between two dumps", () => {
    const totals = new FlowTotals();
    dump(totals, []);
    totals.end(flow(1, 100), web);
    dump(totals, []);
    expect(totals.of(web[0]!)).toMatchObject({ active: 0, bytesIn: 100 });
  });

  it("count a flow once that ends during the dump, before or after it was read", () => {
    const totals = new FlowTotals();
    dump(totals, []);
    totals.begin();
    totals.add(flow(1, 100), web);
    totals.end(flow(1, 120), web);
    totals.end(flow(2, 5), web);
    expect(totals.finish(always, false)).toBe(false);
    expect(totals.of(web[0]!)).toMatchObject({ bytesIn: 105 });
    expect(dump(totals, [])).toBe(false);
    expect(totals.of(web[0]!)).toMatchObject({ bytesIn: 125, active: 0 });
  });

  it("count a flow once that a resized table yields twice", () => {
    const totals = new FlowTotals();
    dump(totals, []);
    dump(totals, [flow(1, 100), flow(1, 100)]);
    expect(totals.of(web[0]!)).toMatchObject({ active: 1, bytesIn: 100 });
  });

  it("count two flows whose ids are equal by chance", () => {
    const totals = new FlowTotals();
    dump(totals, []);
    dump(totals, [flow(1, 100), { ...flow(1, 100), sourcePort: 40_001 }]);
    expect(totals.of(web[0]!)).toMatchObject({ active: 2, bytesIn: 200 });
  });

  it("leave out closed flows from the active ones, and flows that the kernel does not count", () => {
    const totals = new FlowTotals();
    dump(totals, []);
    dump(totals, [flow(1, 3, "TIME_WAIT"), { ...flow(2, 0), counters: null }]);
    expect(totals.of(web[0]!)).toMatchObject({ active: 1, bytesIn: 3 });
  });

  it("forget names that are gone", () => {
    const totals = new FlowTotals();
    dump(totals, []);
    dump(totals, [flow(1, 100)]);
    totals.begin();
    totals.finish(() => false, false);
    expect(totals.of(web[0]!)).toBeNull();
  });
});

describe("what is lost", () => {
  it("is not added, and the sums continue after it", () => {
    const totals = new FlowTotals();
    dump(totals, [flow(1, 100)]);
    dump(totals, [flow(1, 200)]);
    dump(totals, [flow(3, 1000)], true);
    expect(totals.of(web[0]!)).toMatchObject({ bytesIn: 100 });
    dump(totals, [flow(3, 1001)]);
    expect(totals.of(web[0]!)).toMatchObject({ bytesIn: 101 });
  });

  it("is reported when a flow disappears without an event, and nothing decreases", () => {
    const totals = new FlowTotals();
    dump(totals, [flow(1, 100)]);
    expect(dump(totals, [flow(1, 300)])).toBe(false);
    expect(dump(totals, [])).toBe(true);
    expect(totals.of(web[0]!)).toMatchObject({ bytesIn: 200 });
    expect(dump(totals, [flow(2, 5)])).toBe(false);
    expect(totals.of(web[0]!)).toMatchObject({ bytesIn: 205 });
  });
});

it("every byte counts exactly once in generated histories of flows", () => {
  const step = fc.record({
    grow: fc.array(fc.tuple(fc.nat(9), fc.nat(1000)), { maxLength: 8 }),
    end: fc.array(fc.nat(9), { maxLength: 4 }),
    /** How many flows the dump has read when the others end. */
    after: fc.nat(10),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      const totals = new FlowTotals();
      dump(totals, []);
      const current = new Map<number, number>();
      let [sent, serial] = [0, 100];
      const ids = new Map<number, number>();
      const idOf = (n: number) => ids.get(n) ?? ids.set(n, serial++).get(n)!;
      for (const { grow, end, after } of steps) {
        for (const [n, bytes] of grow) {
          current.set(n, (current.get(n) ?? 0) + bytes);
          sent += bytes;
        }
        const endNow = () => {
          for (const n of end) {
            const bytes = current.get(n);
            if (bytes === undefined) continue;
            totals.end(flow(idOf(n), bytes), web);
            current.delete(n);
            ids.delete(n);
          }
        };
        totals.begin();
        let read = 0;
        for (const [n, bytes] of [...current]) {
          if (read++ === after) endNow();
          if (current.has(n)) totals.add(flow(idOf(n), bytes), web);
        }
        if (read <= after) endNow();
        expect(totals.finish(always, false)).toBe(false);
        expect(totals.of(web[0]!)?.bytesIn ?? 0).toBeLessThanOrEqual(sent);
      }
      dump(
        totals,
        [...current].map(([n, bytes]) => flow(idOf(n), bytes)),
      );
      expect(totals.of(web[0]!)?.bytesIn ?? 0).toBe(sent);
    }),
  );
});
