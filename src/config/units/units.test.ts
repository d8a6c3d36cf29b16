// Units: Go's durations, numbers, quantities, CSV and host:port, on examples and on generated text.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseCsv } from "./csv.ts";
import { formatDuration, milliseconds, parseDuration, seconds } from "./duration.ts";
import { appendPort, splitHostPort } from "./host-port.ts";
import {
  formatNumber,
  parseBool,
  parseFloat32,
  parseInt32,
  parseUint31,
  shortestFloat32,
} from "./numbers.ts";
import type { Parsed } from "./parsed.ts";
import { parsePortRange } from "./port-range.ts";
import { parseQuantity, quantityValue } from "./quantity.ts";

function readAs<T>(result: Parsed<T>): T | string {
  return result.ok ? result.value : `refused: ${result.reason}`;
}

const isRefused = (result: Parsed<unknown>) => !result.ok && result.reason.length > 0;

describe("durations", () => {
  it.each([
    ["300ms", "300ms"],
    ["1m30s", "1m30s"],
    ["15m", "15m0s"],
    ["24h", "24h0m0s"],
    ["1.5h", "1h30m0s"],
    [".5s", "500ms"],
    ["1.s", "1s"],
    ["-5s", "-5s"],
    ["+5s", "5s"],
    ["0", "0s"],
    ["-0", "0s"],
    ["1us", "1µs"],
    ["1µs", "1µs"],
    ["1μs", "1µs"],
    ["1500ns", "1.5µs"],
    ["1h1ns", "1h0m0.000000001s"],
    ["8760h0m0.000000001s", "8760h0m0.000000001s"],
    ["1.0000000001s", "1s"],
    ["2562047h47m16.854775807s", "2562047h47m16.854775807s"],
    ["-2562047h47m16.854775808s", "-2562047h47m16.854775808s"],
  ])("reads %s and prints %s", (text, printed) => {
    const duration = parseDuration(text);
    expect(duration.ok && formatDuration(duration.value)).toBe(printed);
  });

  it.each(["", "15", "1h30", "s", "1d", "1e3s", "5 s", "--5s", ".", "2562047h47m16.854775808s"])(
    "refuses %j with advice",
    (text) => {
      expect(isRefused(parseDuration(text))).toBe(true);
    },
  );

  it("prints what it reads back, over the whole range", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (duration) => {
        expect(readAs(parseDuration(formatDuration(duration)))).toBe(duration);
      }),
    );
  });

  it("converts", () => {
    expect(seconds(30)).toBe(30_000_000_000n);
    expect(milliseconds(1_500_000n)).toBe(1.5);
  });
});

describe("numbers", () => {
  it.each([
    ["10", 10],
    ["-999", -999],
    ["+7", 7],
    ["0x10", 16],
    ["010", 8],
    ["0o7", 7],
    ["0b11", 3],
    ["1_000", 1000],
    ["0x_7", 7],
    ["0_7", 7],
    ["-0", 0],
    ["2147483647", 2147483647],
    ["-2147483648", -2147483648],
  ])("reads %s as %d", (text, value) => {
    expect(readAs(parseInt32(text))).toBe(value);
  });

  it.each(["", "1.0", "08", "_7", "7_", "1__0", "0x", "abc", "2147483648", " 1"])("refuses %j", (text) => {
    expect(isRefused(parseInt32(text))).toBe(true);
  });

  it("reads verbosity levels as plain decimals", () => {
    expect(readAs(parseUint31("7"))).toBe(7);
    for (const text of ["-1", "+1", "0x3", "2147483648", ""]) expect(isRefused(parseUint31(text))).toBe(true);
  });

  it("reads booleans as Go does", () => {
    for (const text of ["1", "t", "T", "TRUE", "true", "True"]) expect(readAs(parseBool(text))).toBe(true);
    for (const text of ["0", "f", "F", "FALSE", "false", "False"])
      expect(readAs(parseBool(text))).toBe(false);
    for (const text of ["yes", "", "tRUE"]) expect(isRefused(parseBool(text))).toBe(true);
  });

  it.each([
    ["5", "5"],
    ["0.1", "0.1"],
    ["1234567.5", "1.2345675e+06"],
    ["1e-7", "1e-07"],
    ["3.4e38", "3.4e+38"],
    ["-inf", "-Inf"],
    ["NaN", "NaN"],
  ])("reads the number %s and prints %s", (text, printed) => {
    const number = parseFloat32(text);
    expect(number.ok && formatNumber(shortestFloat32(number.value))).toBe(printed);
  });

  it.each(["", "1e39", "0x1p3x", "five", "1,5"])("refuses the number %j", (text) => {
    expect(isRefused(parseFloat32(text))).toBe(true);
  });
});

describe("quantities", () => {
  it.each([
    ["0", "0"],
    ["0Ki", "0"],
    ["512", "512"],
    ["1500", "1500"],
    ["2048", "2048"],
    ["64Ki", "64Ki"],
    ["1024Ki", "1Mi"],
    ["1000Ki", "1000Ki"],
    ["1.5Ki", "1536"],
    ["0.5Ki", "512"],
    ["1.5M", "1500k"],
    ["1e3", "1e3"],
    ["10e2", "1e3"],
    ["0.1", "100m"],
    ["1e-3", "1e-3"],
    ["12E", "12E"],
    ["-1Ki", "-1Ki"],
  ])("reads %s as %s", (text, canonical) => {
    expect(readAs(parseQuantity(text))).toBe(canonical);
  });

  it("counts whole units, rounded up", () => {
    expect(quantityValue("64Ki")).toBe(65_536n);
    expect(quantityValue("1500k")).toBe(1_500_000n);
    expect(quantityValue("100m")).toBe(1n);
    expect(quantityValue("-100m")).toBe(-1n);
    expect(quantityValue("1e3")).toBe(1_000n);
  });

  it.each(["", ".", "Ki", "1KB", "1 Ki", "abc", "1e1000000"])("refuses %j", (text) => {
    expect(isRefused(parseQuantity(text))).toBe(true);
  });

  it("has a canonical form that reads as itself", () => {
    const suffix = fc.constantFrom("", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi", "e3", "E2");
    fc.assert(
      fc.property(fc.integer({ min: -1e6, max: 1e6 }), suffix, (count, unit) => {
        const once = readAs(parseQuantity(`${count}${unit}`));
        expect(readAs(parseQuantity(once))).toBe(once);
      }),
    );
  });
});

describe("lists and addresses with ports", () => {
  it("reads comma-separated values without trimming", () => {
    expect(readAs(parseCsv("a, b,,c"))).toEqual(["a", " b", "", "c"]);
    expect(readAs(parseCsv('"a,b",c,"d ""e"""'))).toEqual(["a,b", "c", 'd "e"']);
    expect(readAs(parseCsv(""))).toEqual([]);
    for (const text of ['a"b', '"a', '"a"b', 'a,"b']) expect(isRefused(parseCsv(text))).toBe(true);
  });

  it("splits host:port", () => {
    expect(splitHostPort("1.2.3.4:80")).toEqual({ host: "1.2.3.4", port: "80" });
    expect(splitHostPort("[fd00::1]:80")).toEqual({ host: "fd00::1", port: "80" });
    expect(splitHostPort(":80")).toEqual({ host: "", port: "80" });
    for (const text of ["1.2.3.4", "fd00::1", "[fd00::1]", "[a]b:1", "a]:1", "[[a]:1", "a:[1"]) {
      expect(splitHostPort(text)).toBeNull();
    }
  });

  it("adds a port to bare addresses only", () => {
    expect(appendPort("1.2.3.4", 80)).toBe("1.2.3.4:80");
    expect(appendPort("fd00::5", 80)).toBe("[fd00::5]:80");
    for (const text of ["1.2.3.4:1", "[fd00::5]", "name", ""]) expect(appendPort(text, 80)).toBe(text);
  });
});

describe("ranges of ports", () => {
  it.each([
    ["300-2000", { first: 300, last: 2000 }],
    ["300+1700", { first: 300, last: 2000 }],
    ["4000", { first: 4000, last: 4000 }],
    ["", null],
    ["0", null],
    ["0-0", null],
  ])("21/2 %j", (text, range) => {
    expect(readAs(parsePortRange(text))).toEqual(range);
  });

  it("21/2 refuses what is no range", () => {
    for (const text of ["70000", "20-10", "a-b", "1-2-3", "60000+6000", "-5"]) {
      expect(readAs(parsePortRange(text))).toMatch(/^refused: /);
    }
  });
});

it("never throws, whatever the text", () => {
  const parsers = [
    parseDuration,
    parseInt32,
    parseUint31,
    parseFloat32,
    parseBool,
    parseQuantity,
    parseCsv,
    parsePortRange,
  ];
  const text = fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[-+0-9.xeEKMinsmhu_"',]{0,40}$/));
  fc.assert(
    fc.property(text, (sample) => {
      for (const parse of parsers) expect(typeof parse(sample).ok).toBe("boolean");
      appendPort(sample, 1);
    }),
    { numRuns: 500 },
  );
});
