import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Keyed, keyed } from "./keyed.ts";

// Few keys, so that writes collide; in all forms a key may have.
const keys = fc.constantFrom("a", "b", "c", "shop/web/tcp/http", "shop/web/udp/dns", "__proto__", "");
const changes = fc.array(fc.tuple(keys, fc.option(fc.nat(3), { nil: undefined })), { maxLength: 6 });

describe("Keyed", () => {
  it("behaves as a Map that is copied before each change", () => {
    fc.assert(
      fc.property(fc.array(changes, { maxLength: 6 }), fc.boolean(), (batches, asMaps) => {
        const history: [Keyed<number>, Map<string, number>][] = [[keyed(), new Map()]];
        for (const batch of batches) {
          const [map, plain] = history.at(-1)!;
          history.push([map.with(asMaps ? new Map(batch) : batch), changed(plain, batch)]);
        }
        for (const [map, plain] of history) agree(map, plain);
      }),
      { numRuns: 1000 },
    );
  });

  it("stays right, in all its versions, while many writes are folded into it", () => {
    const versions: [Keyed<number>, Map<string, number>][] = [[keyed(), new Map()]];
    for (let i = 0; i < 600; i++) {
      const [map, plain] = versions.at(-1)!;
      const write = [`key-${(i * 7) % 151}`, i % 5 === 0 ? undefined : i] as const;
      versions.push([map.with([write]), changed(plain, [write])]);
    }
    for (const [map, plain] of versions) agree(map, plain);
  });

  it("is not affected by versions made from it, in any order", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(), changes), { maxLength: 8 }), (branches) => {
        const versions: [Keyed<number>, Map<string, number>][] = [[keyed([["a", 1]]), new Map([["a", 1]])]];
        for (const [from, batch] of branches) {
          const [map, plain] = versions[from % versions.length]!;
          versions.push([map.with(batch), changed(plain, batch)]);
        }
        for (const [map, plain] of versions) agree(map, plain);
      }),
      { numRuns: 1000 },
    );
  });

  it("is iterated as it is, whatever is written meanwhile", () => {
    const map = keyed(Array.from({ length: 10 }, (_, i) => [`${i}`, i] as const));
    const seen: number[] = [];
    let next = map;
    for (const value of map.values()) {
      seen.push(value);
      next = next.with([[`${9 - value}`, undefined]]);
    }
    expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(next.size).toBe(0);
    expect(map.size).toBe(10);
  });

  it("takes changes that are computed from it while they are read", () => {
    const map = keyed(Array.from({ length: 10 }, (_, i) => [`${i}`, i] as const));
    const doubled = (function* () {
      for (const key of map.keys()) yield [key, map.get(key)! + map.get("0")! + 1] as const;
    })();
    expect([...map.with(doubled).values()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it("is the very same map when nothing changes", () => {
    const map = keyed([
      ["a", 1],
      ["b", 2],
    ]);
    expect(map.with([])).toBe(map);
    expect(
      map.with([
        ["a", 1],
        ["c", undefined],
      ]),
    ).toBe(map);
    expect(map.with([["a", 2]])).not.toBe(map);
  });

  it("holds 100,000 keys", () => {
    const map = keyed(Array.from({ length: 100_000 }, (_, i) => [`shop/web-${i}/tcp/http`, i] as const));
    expect(map.size).toBe(100_000);
    expect(map.get("shop/web-77777/tcp/http")).toBe(77_777);
    expect(map.with([["shop/web-77777/tcp/http", undefined]]).size).toBe(99_999);
  });
});

function changed(
  plain: ReadonlyMap<string, number>,
  batch: readonly (readonly [string, number | undefined])[],
) {
  const copy = new Map(plain);
  for (const [key, value] of batch) {
    if (value === undefined) copy.delete(key);
    else copy.set(key, value);
  }
  return copy;
}

function agree(map: Keyed<number>, plain: ReadonlyMap<string, number>): void {
  expect(new Map(map.entries())).toEqual(plain);
  expect([...map.keys()].sort()).toEqual([...plain.keys()].sort());
  expect([...map.values()].map(String).sort()).toEqual([...plain.values()].map(String).sort());
  expect(map.size).toBe(plain.size);
  for (const key of ["a", "shop/web/tcp/http", "__proto__", "missing"]) {
    expect(map.get(key)).toBe(plain.get(key));
    expect(map.has(key)).toBe(plain.has(key));
  }
}
