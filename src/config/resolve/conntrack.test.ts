// Which kernel settings the conntrack section requires.
import { describe, expect, it } from "vitest";
import { type ConntrackSettings, conntrackTargets, countCpus } from "./conntrack.ts";

const second = 1_000_000_000n;

const defaults: ConntrackSettings = {
  maxPerCore: 32_768,
  min: 131_072,
  tcpEstablishedTimeout: 86_400n * second,
  tcpCloseWaitTimeout: 3_600n * second,
  tcpBeLiberal: false,
  udpTimeout: 0n,
  udpStreamTimeout: 0n,
};

function maxOf(given: Partial<ConntrackSettings>, cpus: number): number | undefined {
  return conntrackTargets({ ...defaults, ...given }, cpus).find(({ file }) =>
    file.endsWith("nf_conntrack_max"),
  )?.value;
}

describe("nf_conntrack_max", () => {
  it.each([
    [1, 131_072],
    [4, 131_072],
    [8, 262_144],
    [512, 1_048_576],
  ])("02/15 defaults with %i CPUs give %i", (cpus, max) => expect(maxOf({}, cpus)).toBe(max));

  it("02/16 maxPerCore 0 leaves it alone, for any min", () => {
    expect(maxOf({ maxPerCore: 0, min: 123_456 }, 4)).toBeUndefined();
    expect(maxOf({ maxPerCore: null, min: 123_456 }, 4)).toBeUndefined();
  });

  it("02/17 min is not capped, unless the product is", () => {
    expect(maxOf({ maxPerCore: 1, min: 2_000_000 }, 4)).toBe(2_000_000);
    expect(maxOf({ maxPerCore: 1_000_000, min: 2_000_000 }, 4)).toBe(1_048_576);
  });
});

it("everything, in the order in which it is applied", () => {
  const all = { ...defaults, tcpBeLiberal: true, udpTimeout: 10n * second, udpStreamTimeout: second / 2n };
  expect(
    conntrackTargets(all, 8).map(({ file, value, when }) => [file.replace(/.*\//, ""), value, when]),
  ).toEqual([
    ["nf_conntrack_max", 262_144, "differs"],
    ["hashsize", 65_536, "below"],
    ["nf_conntrack_tcp_timeout_established", 86_400, "differs"],
    ["nf_conntrack_tcp_timeout_close_wait", 3_600, "differs"],
    ["nf_conntrack_tcp_be_liberal", 1, "differs"],
    ["nf_conntrack_udp_timeout", 10, "differs"],
    ["nf_conntrack_udp_timeout_stream", 0, "differs"],
  ]);
});

it("times of 0 are left alone", () => {
  expect(
    conntrackTargets({ ...defaults, maxPerCore: 0, tcpEstablishedTimeout: 0n, tcpCloseWaitTimeout: null }, 4),
  ).toEqual([]);
});

it.each([
  ["0", 1],
  ["0-3\n", 4],
  ["0-3,8-11", 8],
  ["0,2,4-5", 4],
  ["", null],
  ["all", null],
  ["3-0", null],
])("%j lists %s CPUs", (online, count) => expect(countCpus(online)).toBe(count));
