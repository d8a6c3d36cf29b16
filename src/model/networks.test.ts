// Nested networks are removed in n log n comparisons, and what is left contains the same addresses.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contains, containsCidr, parseCidr } from "./address.ts";
import { anyContains, withoutNested } from "./networks.ts";

const ipv4 = fc
  .tuple(fc.nat(3), fc.nat(3), fc.nat(255), fc.nat(255), fc.integer({ min: 1, max: 32 }))
  .map(([a, b, c, d, bits]) => parseCidr(`${a}.${b}.${c}.${d}/${bits}`)!);
const ipv6 = fc
  .tuple(fc.nat(3), fc.nat(3), fc.integer({ min: 1, max: 128 }))
  .map(([a, b, bits]) => parseCidr(`fd00:${a}::${b}/${bits}`)!);

describe("networks", () => {
  it.each([
    ["ipv4", ipv4, fc.tuple(fc.nat(3), fc.nat(3), fc.nat(255)).map(([a, b, c]) => `${a}.${b}.${c}.7`)],
    ["ipv6", ipv6, fc.tuple(fc.nat(3), fc.nat(3)).map(([a, b]) => `fd00:${a}::${b}`)],
  ])("contain the same addresses without nested ones, %s", (_, network, address) => {
    fc.assert(
      fc.property(fc.array(network), fc.array(address), (networks, addresses) => {
        const kept = withoutNested(networks);
        for (const inner of kept) expect(kept.filter((outer) => containsCidr(outer, inner))).toEqual([inner]);
        for (const each of addresses) {
          const expected = networks.some((one) => contains(one, each));
          expect(kept.some((one) => contains(one, each))).toBe(expected);
          expect(anyContains(networks, each)).toBe(expected);
        }
      }),
    );
  });

  it("do not contain addresses of the other family", () => {
    expect(anyContains(["0.0.0.0/1"], "::1")).toBe(false);
    expect(anyContains(["::/1"], "0.0.0.1")).toBe(false);
  });

  it.each([1000, 10_000, 50_000])(
    "security/2: removing nested ones among %i takes n log n comparisons",
    (count) => {
      const networks = Array.from({ length: count }, (_, i) =>
        parseCidr(`${1 + (i % 200)}.${(i >> 8) & 255}.${i & 255}.0/${i % 3 === 0 ? 24 : 28}`),
      ).map((network) => network!);
      let [ordered, nested] = [0, 0];
      withoutNested(networks, {
        order: (a, b) => {
          ordered++;
          return a.place < b.place ? -1 : a.place > b.place ? 1 : 0;
        },
        isInside: () => {
          nested++;
          return false;
        },
      });
      expect(nested).toBe(count - 1);
      expect(ordered).toBeLessThan(count * Math.log2(count));
    },
  );
});
