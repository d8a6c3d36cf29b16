import { isIP } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addressBytes,
  contains,
  containsCidr,
  familyOf,
  formatAddress,
  hostCidr,
  isLoopback,
  joinHostPort,
  networkAddress,
  parseAddress,
  parseCidr,
  prefixLength,
} from "./address.ts";

describe("addresses with Go's lenient rules", () => {
  it.each([
    ["010.001.000.009", "10.1.0.9"],
    ["1.2.3", null],
    ["1.2.3.4.5", null],
    ["256.1.1.1", null],
    ["1.2.3.1000", null],
    [" 1.2.3.4", null],
    ["1.2.3.4 ", null],
    ["1.2.3.", null],
    [".1.2.3", null],
    ["1..2.3", null],
    ["1.2.3.4.", null],
    ["0x1.2.3.4", null],
    ["", null],
    ["::ffff:1.2.3.4", "1.2.3.4"],
    ["::FFFF:102:304", "1.2.3.4"],
    ["::ffff:010.2.3.4", "10.2.3.4"],
    ["::1.2.3.4", "::102:304"],
    ["00001::1", "1::1"],
    ["10000::1", null],
    ["fe80::1%eth0", null],
    ["[::1]", null],
    ["::", "::"],
    ["0:0:0:0:0:0:0:1", "::1"],
    ["1:2:3:4:5:6:7", null],
    ["1:2:3:4:5:6:7:8:9", null],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["1:2:3:4::5:6:7:8", null],
    ["1::2::3", null],
    [":1::2", null],
    ["1:::2", null],
    ["2001:DB8::A", "2001:db8::a"],
    ["2001:db8:0:1:0:0:0:1", "2001:db8:0:1::1"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"],
    ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
    ["1.2.3.4::", null],
  ])("%j is %j", (written, canonical) => {
    expect(parseAddress(written)).toBe(canonical);
  });

  it("reads everything that node reads, zones apart, and writes what node reads", () => {
    const written = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.ipV4Extended(),
      fc.string({ unit: fc.constantFrom(..."0123456789abcdf.:".split("")) }),
    );
    fc.assert(
      fc.property(written, (text) => {
        const address = parseAddress(text);
        expect(address !== null || isIP(text) === 0).toBe(true);
        fc.pre(address !== null);
        expect(isIP(address)).toBe(familyOf(address) === "ipv4" ? 4 : 6);
        expect(parseAddress(address)).toBe(address);
        expect(formatAddress(addressBytes(text)!)).toBe(address);
      }),
      { numRuns: 5000 },
    );
  });

  it("writes IPv6 as the URL standard does", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(0, 0, 0, 1, 0xab, 0xffff), { minLength: 8, maxLength: 8 }),
        (groups) => {
          const text = groups.map((group) => group.toString(16)).join(":");
          const address = parseAddress(text)!;
          fc.pre(familyOf(address) === "ipv6");
          expect(`[${address}]`).toBe(new URL(`http://[${text}]`).hostname);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("networks", () => {
  it.each([
    ["10.1.2.3/8", "10.0.0.0/8"],
    ["10.1.2.3/08", "10.0.0.0/8"],
    ["10.1.2.3/0000000008", "10.0.0.0/8"],
    ["10.1.2.3/33", null],
    ["10.1.2.3/-1", null],
    ["10.1.2.3/+8", null],
    ["10.1.2.3/", null],
    ["10.1.2.3/8/8", null],
    ["10.1.2.3", null],
    ["/8", null],
    ["10.255.255.255/31", "10.255.255.254/31"],
    ["1.2.3.4/32", "1.2.3.4/32"],
    ["1.2.3.4/0", "0.0.0.0/0"],
    ["2001:db8:ffff::1/33", "2001:db8:8000::/33"],
    ["::1/128", "::1/128"],
    ["::1/129", null],
    ["::ffff:10.1.2.3/104", "10.0.0.0/8"],
    ["::ffff:10.1.2.3/8", null],
  ])("%j is %j", (written, canonical) => {
    expect(parseCidr(written)).toBe(canonical);
  });

  const cidrs = fc.oneof(
    fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 })),
    fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 })),
  );

  it("contain exactly the addresses that share their prefix", () => {
    fc.assert(
      fc.property(cidrs, fc.oneof(fc.ipV4(), fc.ipV6()), ([base, length], other) => {
        const cidr = parseCidr(`${base}/${length}`);
        const [from, of] = [parseAddress(base)!, parseAddress(other)!];
        fc.pre(cidr !== null);
        expect(contains(cidr, from)).toBe(true);
        expect(contains(cidr, of)).toBe(
          familyOf(of) === familyOf(cidr) && bits(of).startsWith(bits(from).slice(0, prefixLength(cidr))),
        );
      }),
      { numRuns: 2000 },
    );
  });

  it("contain a network when they contain its first address and are not smaller", () => {
    expect(containsCidr("10.0.0.0/8", "10.1.0.0/16")).toBe(true);
    expect(containsCidr("10.1.0.0/16", "10.0.0.0/8")).toBe(false);
    expect(containsCidr("0.0.0.0/0", "::/0")).toBe(false);
    expect(networkAddress("10.1.0.0/16")).toBe("10.1.0.0");
  });

  function bits(address: string): string {
    return [...addressBytes(address)!].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  }
});

describe("small questions about addresses", () => {
  it("loopback", () => {
    expect(["127.0.0.1", "127.255.0.1", "::1"].every(isLoopback)).toBe(true);
    expect(["128.0.0.1", "10.127.0.1", "::2", "::"].some(isLoopback)).toBe(false);
  });

  it("as host and port, as network", () => {
    expect(joinHostPort("10.0.0.1", 80)).toBe("10.0.0.1:80");
    expect(joinHostPort("fd00::1", 80)).toBe("[fd00::1]:80");
    expect(hostCidr("10.0.0.1")).toBe("10.0.0.1/32");
    expect(hostCidr("fd00::1")).toBe("fd00::1/128");
  });
});
