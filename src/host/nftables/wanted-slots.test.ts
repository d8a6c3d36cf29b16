// Slots that are recognised by their bytes are the same as decoded ones, and none is recognised twice.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { slotMap as set } from "../../../test/support/slot-map.ts";
import type { Family } from "../../model/address.ts";
import { atOnce, type Steps } from "../../model/steps.ts";
import type { Backend, BackendSlots } from "../../plan/nftables/types.ts";
import {
  DuplicateElement,
  dumpedElements,
  type Elements,
  type Matches,
  valueAt,
  writeElement,
} from "../netlink/elements.ts";
import { Writer } from "../netlink/writer.ts";
import { decodeSlots, encodeItems } from "./elements.ts";
import { WantedSlots } from "./wanted-slots.ts";

type Slot = { readonly key: string; readonly slot: number; readonly data: Backend };

describe.each(["ipv4", "ipv6"] as const)("slots of %s", (family) => {
  it("are the same BackendSlots for any wanted ones", () => {
    let recognised = 0;
    let others = 0;
    fc.assert(
      fc.property(spreads(family), spreads(family), fc.boolean(), (wanted, changed, isLike) => {
        const have = new Map(isLike ? [...wanted, ...[...changed].slice(0, 1)] : changed);
        const read = dumped(slotsOf(have));
        const found = atOnce(wantedSlots(wanted).slotsIn(read));
        expect(plain(found)).toEqual(plain(decodeSlots(set, read.all())));
        expect(found === wanted).toBe(JSON.stringify(plain(have)) === JSON.stringify(plain(wanted)));
        for (const [key, slots] of found) {
          if (slots === wanted.get(key)) recognised++;
          else others++;
        }
      }),
      { numRuns: 500 },
    );
    expect(recognised).toBeGreaterThan(200);
    expect(others).toBeGreaterThan(200);
  });

  it("are decoded when they are at other positions, too many, too few, or different", () => {
    const [a, b, c] = fc.sample(backend(family), { numRuns: 200, seed: 3 }).filter(isNew) as [
      Backend,
      Backend,
      Backend,
    ];
    const key = keyOf(family, 1, 80);
    const wanted = new Map([[key, { key, backends: [a, b] }]]);
    const found = (...backends: (Backend | undefined)[]) =>
      plain(atOnce(wantedSlots(wanted).slotsIn(dumped(slotsOf(new Map([[key, { key, backends }]]))))));
    expect(found(b, a)).toEqual([[key, [b, a]]]);
    expect(found(a, b, c)).toEqual([[key, [a, b, c]]]);
    expect(found(undefined, b)).toEqual([[key, [undefined, b]]]);
    expect(found(a, c)).toEqual([[key, [a, c]]]);
    expect(found()).toEqual([]);
  });

  it("that appear twice are refused, whether they are wanted or not", () => {
    const [a, b] = fc.sample(backend(family), { numRuns: 200, seed: 3 }).filter(isNew) as [Backend, Backend];
    const key = keyOf(family, 1, 80);
    const slots = wantedSlots(new Map([[key, { key, backends: [a] }]]));
    const first = { key, slot: 0, data: a };
    const other = { key, slot: 7, data: a };
    expect(() => atOnce(slots.slotsIn(dumped([first, first])))).toThrow(DuplicateElement);
    expect(() => atOnce(slots.slotsIn(dumped([other, other])))).toThrow(DuplicateElement);
    expect(() => atOnce(slots.slotsIn(dumped([first, { ...first, data: b }])))).toThrow(DuplicateElement);
    expect(atOnce(slots.slotsIn(dumped([first, other]))).get(key)!.backends).toHaveLength(8);
  });
});

it("is made and read in steps, so that 10,000 keys do not hold up other work", () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `172.30.${i >> 8}.${i & 255} . tcp . 80`);
  const backends = [{ address: "10.0.0.1", port: 80 }];
  const wanted = new Map(keys.map((key) => [key, { key, backends }]));
  const [making, slots] = counted(WantedSlots.of(set, wanted));
  const lists = Array.from({ length: 100 }, (_, i) =>
    bytesOf((out) => {
      for (const key of keys.slice(i * 100, (i + 1) * 100))
        for (const element of encodeItems(set, [{ key, slot: 0, data: backends[0]!, comment: null }]))
          writeElement(out, element);
    }),
  );
  const [reading, found] = counted(slots.slotsIn(dumpedElements(lists)));
  expect([making, reading]).toEqual([10, 12]);
  expect(found).toBe(wanted);
});

/** How many steps it took before the last one. */
function counted<T>(steps: Steps<T>): readonly [number, T] {
  for (let count = 0; ; count++) {
    const step = steps.next();
    if (step.done === true) return [count, step.value];
  }
}

it("finds the value of an element with nothing besides, and no other", () => {
  const values: [number, number][] = [];
  const elements = listOf((out) => {
    writeElement(out, { key: "\0\0\0\u0001", data: "\0\0\0\u0002" });
    writeElement(out, { key: "\0\0\0\u0003", data: "\0\0\0\u0004", userdata: "of another program" });
    writeElement(out, { key: "\0\0\0\u0005", data: "\0\0\0\u0006", flags: 1 });
    writeElement(out, { key: "\0\0\0\u0007" });
    writeElement(out, { key: "\0\0\0\u0008", keyEnd: "\0\0\0\u0009" });
    writeElement(out, { key: "\0\0\0\u000a", data: { kind: "drop" } });
    writeElement(out, { key: "\0\0\0\u000b", data: "\0\0\0\0\0\0\0\u000c" });
    writeElement(out, { key: "", data: "\0\0\0\u000d", flags: 2 });
  });
  const matches: Matches = (bytes, key, _keyEnd, rest, end) => {
    const value = valueAt(bytes, rest, end, 4);
    values.push([bytes[key + 3]!, value === -1 ? -1 : bytes[value + 3]!]);
    return value !== -1;
  };
  const others = atOnce(elements.except(matches));
  expect(values).toEqual([[1, 2], ...[3, 5, 7, 8, 10, 11].map((key) => [key, -1])]);
  expect(others).toEqual(elements.all().slice(1));
});

function wantedSlots(wanted: ReadonlyMap<string, BackendSlots>): WantedSlots {
  return atOnce(WantedSlots.of(set, wanted));
}

function backend(family: Family): fc.Arbitrary<Backend> {
  const address = fc
    .integer({ min: 1, max: 9 })
    .map((n) => (family === "ipv4" ? `10.0.${n}.${n}` : `fd00::${n}:${n}`));
  return fc.record({ address, port: fc.constantFrom(80, 8080, 65_535) });
}

function keyOf(family: Family, service: number, port: number): string {
  return `${family === "ipv4" ? `172.30.0.${service}` : `fd30::${service}`} . tcp . ${port}`;
}

function spreads(family: Family): fc.Arbitrary<Map<string, BackendSlots>> {
  const key = fc
    .tuple(fc.integer({ min: 1, max: 6 }), fc.constantFrom(80, 443))
    .map(([service, port]) => keyOf(family, service, port));
  const slots = fc.record({ key, backends: fc.array(backend(family), { minLength: 1, maxLength: 5 }) });
  return fc
    .uniqueArray(slots, { selector: ({ key: name }) => name, maxLength: 9 })
    .map((all) => new Map(all.map((each) => [each.key, each])));
}

function slotsOf(all: ReadonlyMap<string, BackendSlots>): Slot[] {
  return [...all.values()].flatMap(({ key, backends }) =>
    backends.flatMap((data, slot) => (data === undefined ? [] : [{ key, slot, data }])),
  );
}

/** As the kernel sends them, in two lists. */
function dumped(slots: readonly Slot[]): Elements {
  const half = slots.length >> 1;
  const list = (some: readonly Slot[]) =>
    bytesOf((out) => {
      for (const element of encodeItems(
        set,
        some.map((slot) => ({ ...slot, comment: null })),
      ))
        writeElement(out, element);
    });
  return dumpedElements([list(slots.slice(half)), list(slots.slice(0, half))]);
}

function listOf(write: (out: Writer) => void): Elements {
  return dumpedElements([bytesOf(write)]);
}

function bytesOf(write: (out: Writer) => void): Buffer {
  const out = new Writer(65_536);
  write(out);
  return Buffer.from(out.bytes());
}

function plain(found: ReadonlyMap<string, BackendSlots>): unknown {
  return [...found.values()]
    .map(({ key, backends }) => [key, Array.from(backends)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

function isNew({ address, port }: Backend, at: number, all: readonly Backend[]): boolean {
  return all.findIndex((other) => other.address === address && other.port === port) === at;
}
