// Keys of elements survive the way from kernel bytes to text and back, also those that another program wrote.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nodePortsSet as set } from "../../../test/support/nodeports-set.ts";
import { atOnce } from "../../model/steps.ts";
import { u8Bytes, u16Bytes } from "../netlink/bytes.ts";
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
});
