// Elements that are recognised by their bytes are the same as decoded ones, and none is recognised twice.
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { nodePortsSet } from "../../../test/support/nodeports-set.ts";
import { atOnce } from "../../model/steps.ts";
import type { Element, NftSet, Verdict } from "../../plan/nftables/types.ts";
import { drop, goto } from "../../plan/nftables/verdict.ts";
import { DuplicateElement, dumpedElements, type Elements, writeElement } from "../netlink/elements.ts";
import { Writer } from "../netlink/writer.ts";
import { decodeElements, encodeItems } from "./elements.ts";
import { WantedElements } from "./wanted-elements.ts";

const addresses: NftSet = { ...nodePortsSet, name: "addresses", key: ["address"], data: null };
const ports: NftSet = { ...nodePortsSet, name: "ports", key: ["port"], data: null };
const frontends: NftSet = { ...nodePortsSet, name: "frontends", key: ["address", "protocol", "port"] };

const verdicts: readonly Verdict[] = [drop, goto("pick-tcp-2"), goto("pick-tcp-3")];

describe.each([addresses, ports, frontends])("elements of a set of $key", (set) => {
  it("are the same for any wanted ones, and the wanted map itself if all are as wanted", () => {
    let same = 0;
    fc.assert(
      fc.property(elements(set), elements(set), fc.nat(2), (wanted, changed, likeness) => {
        const have = likeness === 2 ? changed : new Map([...wanted, ...[...changed].slice(0, likeness)]);
        const read = dumped(set, [...have.values()]);
        const found = atOnce(wantedElements(set, wanted).elementsIn(read));
        expect(sorted(found)).toEqual(sorted(atOnce(decodeElements(set, read.all()))));
        expect(found === wanted).toBe(JSON.stringify(sorted(have)) === JSON.stringify(sorted(wanted)));
        if (found === wanted) same++;
      }),
      { numRuns: 500 },
    );
    expect(same).toBeGreaterThan(100);
  });

  it("that appear twice are refused, whether they are wanted or not", () => {
    const [a, b] =
      set === ports ? ["80", "443"] : set === addresses ? ["10.0.0.1", "10.0.0.2"] : frontendKeys;
    const one: Element = { key: a!, data: set.data === null ? null : drop, comment: null };
    const other: Element = { ...one, key: b! };
    const wanted = wantedElements(set, new Map([[one.key, one]]));
    const found = (...all: Element[]) => atOnce(wanted.elementsIn(dumped(set, all)));
    expect(() => found(one, one)).toThrow(DuplicateElement);
    expect(() => found(one, other, other)).toThrow(DuplicateElement);
    expect(() => found(one, { ...one, comment: "another" })).toThrow(DuplicateElement);
    expect(new Set(found(one, other).keys())).toEqual(new Set([a, b]));
  });
});

it("decodes each verdict once, however many elements have it", () => {
  const keys = Array.from({ length: 3000 }, (_, i) => `172.30.${i >> 8}.${i & 255} . tcp . 80`);
  const wanted = new Map(
    keys.map((key, i) => [key, { key, data: verdicts[i % verdicts.length]!, comment: null }]),
  );
  const read = dumped(frontends, [...wanted.values()]);
  const decoded = vi.spyOn(Buffer.prototype, "toString");
  try {
    expect(atOnce(wantedElements(frontends, wanted).elementsIn(read))).toBe(wanted);
    // The names of the two chains.
    expect(decoded).toHaveBeenCalledTimes(2);
  } finally {
    decoded.mockRestore();
  }
});

const frontendKeys = ["172.30.0.1 . tcp . 80", "172.30.0.2 . tcp . 80"];

function wantedElements(set: NftSet, wanted: ReadonlyMap<string, Element>): WantedElements {
  return atOnce(WantedElements.of(set, wanted));
}

function elements(set: NftSet): fc.Arbitrary<Map<string, Element>> {
  const address = fc.integer({ min: 1, max: 4 }).map((n) => `172.30.0.${n}`);
  const port = fc.constantFrom("80", "443", "8080");
  const key =
    set === addresses
      ? address
      : set === ports
        ? port
        : fc.tuple(address, fc.constantFrom("tcp", "udp"), port).map((parts) => parts.join(" . "));
  const data = set.data === null ? fc.constant(null) : fc.constantFrom(...verdicts);
  const comment = fc.constantFrom(null, null, "shop/web");
  const element = fc.record({ key, data, comment });
  return fc
    .uniqueArray(element, { selector: ({ key: name }) => name, maxLength: 9 })
    .map((all) => new Map(all.map((each) => [each.key, each])));
}

/** As the kernel sends them. */
function dumped(set: NftSet, all: readonly Element[]): Elements {
  const out = new Writer(1 << 20);
  for (const element of encodeItems(set, all)) writeElement(out, element);
  return dumpedElements([Buffer.from(out.bytes())]);
}

function sorted(all: ReadonlyMap<string, Element>): readonly Element[] {
  return [...all.values()]
    .map(({ key, data, comment }) => ({ key, data, comment }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
}
