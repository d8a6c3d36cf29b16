// Keys are joined and split without loss, whatever their parts hold.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { contains, hostCidr, parseAddress, parseCidr } from "../../model/address.ts";
import { type Protocol, protocols } from "../../model/snapshot.ts";
import {
  addressKey,
  elementId,
  hairpinKey,
  isInRange,
  joinKey,
  networkKey,
  nodePortKey,
  rangeKey,
  rangeOf,
  slotKey,
  splitKey,
} from "./key.ts";

const address = fc.oneof(fc.ipV4(), fc.ipV6()).map((text) => parseAddress(text)!);
const protocol = fc.constantFrom<Protocol>(...protocols);
const port = fc.nat(65535);
const network = fc
  .oneof(
    fc.tuple(fc.ipV4(), fc.nat(32)),
    fc.tuple(fc.ipV6(), fc.nat(128)).filter(([text]) => parseAddress(text)!.includes(":")),
  )
  .map(([text, bits]) => parseCidr(`${text}/${bits}`)!);

describe("a key", () => {
  it("is the text that nft lists", () => {
    expect(addressKey("172.30.0.1", "tcp", 80)).toBe("172.30.0.1 . tcp . 80");
    expect(addressKey("fd30::1", "udp", 53)).toBe("fd30::1 . udp . 53");
    expect(nodePortKey("sctp", 30080)).toBe("sctp . 30080");
    expect(hairpinKey("10.0.0.1", "tcp", 8080)).toBe("10.0.0.1 . 10.0.0.1 . tcp . 8080");
    expect(slotKey(nodePortKey("tcp", 30080), 3)).toBe("tcp . 30080 . 3");
    expect(slotKey(joinKey([]), 3)).toBe("3");
    expect(elementId("service-ips", addressKey("172.30.0.1", "tcp", 80))).toBe(
      "service-ips 172.30.0.1 . tcp . 80",
    );
  });

  it("splits into the parts it was made of", () => {
    fc.assert(
      fc.property(address, protocol, port, fc.nat(), (to, over, at, slot) => {
        const key = addressKey(to, over, at);
        expect(splitKey(key)).toEqual([to, over, String(at)]);
        expect(splitKey(nodePortKey(over, at))).toEqual([over, String(at)]);
        expect(splitKey(hairpinKey(to, over, at))).toEqual([to, to, over, String(at)]);
        expect(splitKey(slotKey(key, slot))).toEqual([...splitKey(key), String(slot)]);
        expect(splitKey(slotKey("", slot))).toEqual([String(slot)]);
      }),
    );
  });

  it("is the same whether joined from parts or made for its purpose", () => {
    fc.assert(
      fc.property(address, protocol, port, (to, over, at) => {
        expect(joinKey([to, over, String(at)])).toBe(addressKey(to, over, at));
        expect(joinKey([over, String(at)])).toBe(nodePortKey(over, at));
      }),
    );
  });

  it("joins again to what it was, for any text", () => {
    const hostile = fc
      .array(fc.oneof(fc.constantFrom(" . ", ".", " ", "", "-", "/", "*", "\0", "__proto__"), fc.string()))
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(hostile, (text) => {
        expect(joinKey(splitKey(text))).toBe(text);
      }),
    );
  });

  it("keeps parts that hold dots, spaces and slashes apart", () => {
    const part = fc
      .string({ unit: fc.constantFrom(".", " ", "/", "-", ":", "a", "0"), minLength: 1 })
      .map((text) => text.trim())
      .filter((text) => text !== "" && text !== "." && !` ${text} `.includes(" . "));
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        expect(splitKey(joinKey(parts))).toEqual(parts);
      }),
    );
  });
});

describe("the key of a range", () => {
  it.each([
    ["10.0.0.0", "10.255.255.255", "10.0.0.0/8"],
    ["10.0.0.1", "10.0.0.1", "10.0.0.1"],
    ["0.0.0.0", "255.255.255.255", "0.0.0.0/0"],
    ["10.0.0.1", "10.0.0.2", "10.0.0.1-10.0.0.2"],
    ["10.0.0.0", "10.0.0.2", "10.0.0.0-10.0.0.2"],
    ["10.0.0.3", "10.0.0.4", "10.0.0.3-10.0.0.4"],
    ["fd00::", "fd00::ffff", "fd00::/112"],
    ["fd00::1", "fd00::1", "fd00::1"],
  ])("from %s to %s is %s", (first, last, key) => {
    expect(rangeKey(first, last)).toBe(key);
    expect(rangeOf(key)).toEqual({ first, last });
  });

  it.each([
    ["10.0.0.0/8", "10.0.0.0/8"],
    ["10.0.0.1/32", "10.0.0.1"],
    ["fd00::/32", "fd00::/32"],
    ["fd00::1/128", "fd00::1"],
  ])("of the network %s is %s", (network, key) => {
    expect(networkKey(network)).toBe(key);
  });

  it("of a network is the same from its first and last address", () => {
    // The last address of these looks IPv4-mapped.
    for (const network of ["::/80", "::fffe:0:0/95"]) {
      const { first, last } = rangeOf(network);
      expect(rangeKey(first, last)).toBe(network);
    }
    fc.assert(
      fc.property(network, (cidr) => {
        const { first, last } = rangeOf(networkKey(cidr));
        expect(rangeKey(first, last)).toBe(networkKey(cidr));
      }),
    );
  });

  it("gives first and last address back for any two addresses of a family", () => {
    const pair = fc.oneof(fc.tuple(fc.ipV4(), fc.ipV4()), fc.tuple(fc.ipV6(), fc.ipV6()));
    fc.assert(
      fc.property(pair, ([one, other]) => {
        const [first, last] = [parseAddress(one)!, parseAddress(other)!];
        expect(rangeOf(rangeKey(first, last))).toEqual({ first, last });
      }),
    );
  });

  it("contains what the network contains, at its ends and beyond", () => {
    fc.assert(
      fc.property(network, address, (cidr, other) => {
        const { first, last } = rangeOf(cidr);
        for (const each of [first, last, other]) {
          const expected = contains(cidr, each);
          expect(isInRange(networkKey(cidr), each)).toBe(expected);
          expect(isInRange(`${first}-${last}`, each)).toBe(expected);
        }
        expect(isInRange(networkKey(hostCidr(other)), other)).toBe(true);
      }),
    );
  });

  it.each([
    ["10.0.0.3-10.0.0.5", "10.0.0.2", false],
    ["10.0.0.3-10.0.0.5", "10.0.0.4", true],
    ["10.0.0.3-10.0.0.5", "10.0.0.6", false],
    ["10.0.0.3-10.0.0.5", "fd00::4", false],
    ["10.0.0.3", "10.0.0.30", false],
  ])("%s contains %s: %s", (key, address, expected) => {
    expect(isInRange(key, address)).toBe(expected);
  });
});
