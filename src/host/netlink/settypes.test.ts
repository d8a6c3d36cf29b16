import { describe, expect, it } from "vitest";
import { declareSet } from "./settypes.ts";
import { commentOf, commentUserdata, setCommentOf } from "./userdata.ts";

describe("a declared set", () => {
  it("carries what nft 1.0.6 sends for a typeof map", () => {
    const set = declareSet({
      family: "ip",
      table: "t",
      name: "endpoints",
      key: ["ip daddr", "meta l4proto", "th dport", "numgen random mod 65536"],
      data: ["ip daddr", "tcp dport"],
      comment: "hello",
    });
    expect(set).toMatchObject({ flags: 8, keyType: 1884996, keyLength: 16, dataType: 461, dataLength: 8 });
    expect(Buffer.from(set.userdata!, "latin1").toString("hex")).toBe(
      [
        "000400000000" + "010400000000",
        "036000040d0000000158",
        "001400040700000001" + "0c00040c00000001040c000000",
        "010e00040900000001" + "06000410000000",
        "021400040700000001" + "0c00040b000000010402000000",
        "031a00041700000001" + "1200040100000001040000010002" + "0400000000",
        "043400040d000000012c",
        "001400040700000001" + "0c00040c00000001040c000000",
        "011400040700000001" + "0c000408000000010402000000",
        "060400000000",
        "070668656c6c6f00",
      ].join(""),
    );
  });

  it("describes the fields of concatenated ranges, and nothing where nft sends nothing", () => {
    const ranges = declareSet({
      family: "ip",
      table: "t",
      name: "s",
      key: ["ipv4_addr", "inet_proto", "inet_service"],
      interval: true,
    });
    expect(ranges).toMatchObject({
      flags: 0x84,
      keyLength: 12,
      description: { fields: [{ length: 4 }, { length: 1 }, { length: 2 }] },
    });
    expect(declareSet({ family: "ip", table: "t", name: "s", key: ["ipv4_addr"] })).not.toHaveProperty(
      "description",
    );
  });

  it("refuses user data that the kernel would not store", () => {
    const key = ["ip daddr", "meta l4proto", "th dport", "numgen random mod 65536"] as const;
    expect(() => declareSet({ family: "ip", table: "t", name: "s", key, comment: "x".repeat(200) })).toThrow(
      RangeError,
    );
  });
});

describe("a comment", () => {
  it("is read as it was written", () => {
    expect(commentOf(commentUserdata("grüße"))).toBe("grüße");
    expect(commentOf(undefined)).toBeNull();
    expect(
      setCommentOf(
        declareSet({ family: "ip", table: "t", name: "s", key: ["mark"], comment: "why" }).userdata,
      ),
    ).toBe("why");
  });
});
