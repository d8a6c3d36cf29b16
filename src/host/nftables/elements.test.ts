// Keys of elements survive the way from kernel bytes to text and back, also those that another program wrote.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodePortsSet as set } from "../../../test/support/nodeports-set.ts";
import { atOnce } from "../../model/steps.ts";
import type { NftSet } from "../../plan/nftables/types.ts";
import { u8Bytes, u16Bytes } from "../netlink/bytes.ts";
import { elementFlag } from "../netlink/elements.ts";
import { decodeElements, encodeItems } from "./elements.ts";

describe("the key of an element", () => {
  it("has the same bytes after decoding and encoding, for any protocol and port", () => {
    fc.assert(
      fc.property(fc.nat(255), fc.nat(65535), (protocol, port) => {
        const element = {
          key: `${u8Bytes(protocol)}\0\0\0${u16Bytes(port)}\0\0`,
          data: { kind: "drop" } as const,
        };
        const items = [...atOnce(decodeElements(set, [element])).values()].map((each) => ({
          ...each,
          slot: null,
        }));
        expect([...encodeItems(set, items)]).toEqual([element]);
      }),
    );
  });

  it("is `*` for the one that catches everything, also in a set of ranges, which nft cannot add", () => {
    const catchAll = { key: "", flags: elementFlag.catchAll };
    const range = { key: "\x0a\0\0\0" };
    const end = { key: "\x0b\0\0\0", flags: elementFlag.intervalEnd };
    const ranges: NftSet = { ...set, key: ["address"], data: null, interval: true };
    const items = [...atOnce(decodeElements(ranges, [range, catchAll, end])).values()].map((each) => ({
      ...each,
      slot: null,
    }));
    expect(items.map(({ key }) => key)).toEqual(["*", "10.0.0.0/8"]);
    expect([...encodeItems(ranges, items)]).toEqual([catchAll, range, end]);
  });
});
