// Rules as text: the input, the kernel's listing, and that both are the same rule.
import { describe, expect, it } from "vitest";
import type { Family } from "../../model/address.ts";
import { parseRule } from "./parse-rule.ts";
import { savedProbability, writtenProbability } from "./probability.ts";
import { ruleInput, savedRule } from "./text.ts";
import type { Match, Rule, Target } from "./types.ts";

const comment: Match = { kind: "comment", text: "shop/web:http" };
const tcp: Match = { kind: "protocol", protocol: "tcp" };
const port: Match = { kind: "destinationPort", port: 80 };
const next: Target = { kind: "jump", chain: "KUBE-NEXT" };

/** Rule, family, input, listing: the normal forms that iptables 1.8.9 prints. */
const forms: readonly (readonly [Rule, Family, string, string])[] = [
  [
    { match: [comment, tcp, { kind: "destination", cidr: "172.30.0.10", not: false }, port], target: next },
    "ipv4",
    "-m comment --comment shop/web:http -m tcp -p tcp -d 172.30.0.10 --dport 80 -j KUBE-NEXT",
    '-d 172.30.0.10/32 -p tcp -m comment --comment "shop/web:http" -m tcp --dport 80 -j KUBE-NEXT',
  ],
  [
    { match: [tcp, port, { kind: "source", cidr: "10.0.0.0/8", not: true }], target: next },
    "ipv4",
    "-m tcp -p tcp --dport 80 ! -s 10.0.0.0/8 -j KUBE-NEXT",
    "! -s 10.0.0.0/8 -p tcp -m tcp --dport 80 -j KUBE-NEXT",
  ],
  [
    { match: [{ kind: "inInterface", name: "pod+", not: true }], target: { kind: "setMark", mark: 0x4000 } },
    "ipv4",
    "! -i pod+ -j MARK --or-mark 0x00004000",
    "! -i pod+ -j MARK --set-xmark 0x4000/0x4000",
  ],
  [
    { match: [{ kind: "mark", mark: 0x4000, not: true }], target: { kind: "flipMark", mark: 0x4000 } },
    "ipv4",
    "-m mark ! --mark 0x00004000/0x00004000 -j MARK --xor-mark 0x00004000",
    "-m mark ! --mark 0x4000/0x4000 -j MARK --set-xmark 0x4000/0x0",
  ],
  [
    { match: [{ kind: "recentlySeen", list: "KUBE-SEP-X", seconds: 600 }], target: next },
    "ipv6",
    "-m recent --name KUBE-SEP-X --rcheck --seconds 600 --reap -j KUBE-NEXT",
    "-m recent --rcheck --seconds 600 --reap --name KUBE-SEP-X --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource -j KUBE-NEXT",
  ],
  [
    {
      match: [{ kind: "remember", list: "KUBE-SEP-X" }, tcp],
      target: { kind: "dnat", address: "fd00::1", port: 8443 },
    },
    "ipv4",
    "-m recent --name KUBE-SEP-X --set -m tcp -p tcp -j DNAT --to-destination [fd00::1]:8443",
    "-p tcp -m recent --set --name KUBE-SEP-X --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination [fd00::1]:8443",
  ],
  [
    { match: [{ kind: "counter", name: "packets" }], target: { kind: "reject" } },
    "ipv6",
    "-m nfacct --nfacct-name packets -j REJECT",
    "-m nfacct --nfacct-name  packets -j REJECT --reject-with icmp6-port-unreachable",
  ],
  [
    { match: [{ kind: "random", oneIn: 3 }], target: { kind: "return" } },
    "ipv4",
    "-m statistic --mode random --probability 0.3333333333 -j RETURN",
    "-m statistic --mode random --probability 0.33333333349 -j RETURN",
  ],
  [
    {
      match: [
        { kind: "comment", text: "a \"b\" 'c' \\d" },
        { kind: "ctstate", states: "NEW", not: true },
      ],
      target: { kind: "none" },
    },
    "ipv4",
    '-m comment --comment "a \\"b\\" \'c\' \\\\d" -m conntrack ! --ctstate NEW',
    '-m comment --comment "a \\"b\\" \\\'c\\\' \\\\d" -m conntrack ! --ctstate NEW',
  ],
  [
    {
      match: [{ kind: "localAddress", side: "src", not: false }],
      target: { kind: "masquerade", randomPorts: true },
    },
    "ipv4",
    "-m addrtype --src-type LOCAL -j MASQUERADE --random-fully",
    "-m addrtype --src-type LOCAL -j MASQUERADE --random-fully",
  ],
  [
    {
      match: [
        { kind: "bareProtocol", protocol: "sctp" },
        { kind: "comment", text: "with type 'hash ip:port'" },
        { kind: "set", name: "KUBE-X", sides: "dst,dst" },
        { kind: "notBridged" },
        { kind: "localAddress", side: "src", not: true },
      ],
      target: { kind: "masquerade", randomPorts: false },
    },
    "ipv4",
    `-p sctp -m comment --comment "with type 'hash ip:port'" -m set --match-set KUBE-X dst,dst -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j MASQUERADE`,
    `-p sctp -m comment --comment "with type \\'hash ip:port\\'" -m set --match-set KUBE-X dst,dst -m physdev ! --physdev-is-in -m addrtype ! --src-type LOCAL -j MASQUERADE`,
  ],
  [
    {
      match: [
        { kind: "source", cidr: "fd00::1", not: false },
        { kind: "ipvs", address: "fd00::1", protocol: "udp", port: 53 },
      ],
      target: { kind: "drop" },
    },
    "ipv6",
    "-s fd00::1 -m ipvs --vaddr fd00::1 --vproto udp --vport 53 -j DROP",
    "-s fd00::1/128 -m ipvs --vproto 17 --vaddr fd00::1 --vport 53 -j DROP",
  ],
];

describe("text of rules", () => {
  it.each(forms)("%#: input and listing", (rule, family, input, listing) => {
    expect(ruleInput(rule)).toBe(input);
    expect(savedRule(rule, family)).toBe(listing);
  });

  it.each(forms)("%#: a listing is read back as the same rule", (rule, family) => {
    const listing = savedRule(rule, family);
    expect(savedRule(parseRule(listing)!, family)).toBe(listing);
  });

  it.each([
    "-p tcp -m multiport --dports 80,81 -j KUBE-NEXT",
    "-o eth0 -j KUBE-NEXT",
    "-j SNAT --to-source 10.0.0.1",
    "-p tcp -j ACCEPT extra",
    "-m mark --mark 0x1/0xff -j ACCEPT",
    "-j MARK --set-xmark 0x1/0xff",
    "-m statistic --mode nth --every 2 --packet 0 -j KUBE-NEXT",
    "-m recent --update --name x --mask 255.255.255.255 --rsource -j KUBE-NEXT",
  ])("does not claim to understand %s", (text) => {
    expect(parseRule(text)).toBeNull();
  });

  it.each([
    [0, "0x00000001", "0x1"],
    [14, "0x00004000", "0x4000"],
    [15, "0x00008000", "0x8000"],
    [31, "0x80000000", "0x80000000"],
  ])("10/4 masquerade bit %i", (bit, written, listed) => {
    const rule: Rule = { match: [], target: { kind: "setMark", mark: 1 << bit } };
    expect(ruleInput(rule)).toBe(`-j MARK --or-mark ${written}`);
    expect(savedRule(rule, "ipv4")).toBe(`-j MARK --set-xmark ${listed}/${listed}`);
  });
});

describe("probabilities", () => {
  it.each([
    [2, "0.5000000000", "0.50000000000"],
    [3, "0.3333333333", "0.33333333349"],
    [4, "0.2500000000", "0.25000000000"],
    [5, "0.2000000000", "0.20000000019"],
    [6, "0.1666666667", "0.16666666651"],
    [7, "0.1428571429", "0.14285714272"],
    [2048, "0.0004882812", "0.00048828125"],
    [100_001, "0.0000099999", "0.00001000008"],
  ])("10/22 one in %i", (oneIn, written, listed) => {
    expect(writtenProbability(oneIn)).toBe(written);
    expect(savedProbability(oneIn)).toBe(listed);
  });

  it("10/22 is rounded to ten decimals, ties to even, for every number of endpoints", () => {
    for (let k = 1; k <= 5000; k++) expect(writtenProbability(k)).toBe(roundedExactly(1 / k, 10));
  });
});

/** The exact decimal value of a double, rounded half to even. */
function roundedExactly(value: number, decimals: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn) - 1075;
  const mantissa = (bits & 0xfffffffffffffn) | 0x10000000000000n;
  const scaled = mantissa * 10n ** BigInt(decimals);
  const shift = BigInt(-exponent);
  const floor = scaled >> shift;
  const rest = scaled - (floor << shift);
  const half = 1n << (shift - 1n);
  const up = rest > half || (rest === half && floor % 2n === 1n);
  const digits = (up ? floor + 1n : floor).toString().padStart(decimals + 1, "0");
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}
