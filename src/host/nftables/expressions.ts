// Rules of the Plan as kernel expressions, laid out in registers as nft does, so that nft can list what we write.
import { networkAddress, prefixLength } from "../../model/address.ts";
import type { Field, NftFamily, Rule, Statement } from "../../plan/nftables/types.ts";
import { addressText, type Bytes, hostU32Bytes, paddedText, u8Bytes, u16Bytes } from "../netlink/bytes.ts";
import { verdictRegister } from "../netlink/datum.ts";
import { type Expr, fibFlag, natFlag } from "../netlink/expressions.ts";

/** Returns the name and number of an anonymous map from slots to chains. */
export type Anonymous = (chains: readonly string[]) => { readonly set: string; readonly setId?: number };

export function expressionsOf(
  { statements }: Rule,
  family: NftFamily,
  anonymous: Anonymous,
): readonly Expr[] {
  return statements.flatMap((statement) => expressionsFor(statement, family, anonymous));
}

export const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;

/** Where the fields are; registers are counted in units of four bytes. */
const layouts = {
  ip: { saddr: 12, daddr: 16, addressLength: 4, nat: "ip", reject: 3 },
  ip6: { saddr: 8, daddr: 24, addressLength: 16, nat: "ip6", reject: 4 },
} as const;

const stateNew = 8;
const statusConfirmed = 0x8;
const statusDnat = 0x20;
const routeLocal = 2;
const counterObject = 1;
const interfaceNameLength = 16;

function expressionsFor(statement: Statement, family: NftFamily, anonymous: Anonymous): readonly Expr[] {
  const layout = layouts[family];
  switch (statement.kind) {
    case "ct state new":
      return [{ kind: "ct", register: 0, key: "state" }, ...hasBits(stateNew)];
    case "ct status dnat":
      return [{ kind: "ct", register: 0, key: "status" }, ...hasBits(statusDnat)];
    case "ct status ! confirmed":
      return [{ kind: "ct", register: 0, key: "status" }, ...hasBits(statusConfirmed, "==")];
    case "address":
      return inNetwork(statement, family);
    case "iifname":
      return [
        { kind: "meta", register: 0, key: "iifname" },
        { kind: "cmp", register: 0, op: statement.not ? "!=" : "==", value: interfaceName(statement) },
      ];
    case "fib local": {
      const flags = statement.field === "saddr" ? fibFlag.source : fibFlag.destination;
      return [
        { kind: "fib", register: 0, result: "type", flags },
        { kind: "cmp", register: 0, op: "==", value: hostU32Bytes(routeLocal) },
      ];
    }
    case "in set":
      return [...load(statement.fields, family), { kind: "lookup", set: statement.set, source: 0, flags: 0 }];
    case "vmap":
      return [...load(statement.fields, family), toVerdict({ set: statement.map })];
    case "marked":
      return [{ kind: "meta", register: 0, key: "mark" }, ...hasBits(statement.mark)];
    case "set mark":
      return setMark(statement.how, statement.mark);
    case "dnat":
      return [
        ...isProtocol(statement.protocol),
        { kind: "immediate", register: 0, value: addressText(statement.address) },
        { kind: "immediate", register: 4, value: u16Bytes(statement.port) },
        { kind: "nat", type: "dnat", family: layout.nat, addressMin: 0, portMin: 4, flags: natFlag.ports },
      ];
    case "dnat by slot": {
      const key = load(statement.fields, family);
      return [
        ...isProtocol(statement.protocol),
        ...key,
        {
          kind: "numgen",
          register: widthOf(statement.fields, family),
          modulus: statement.slots,
          type: "random",
          offset: 0,
        },
        { kind: "lookup", set: statement.map, source: 0, register: 0, flags: 0 },
        {
          kind: "nat",
          type: "dnat",
          family: layout.nat,
          addressMin: 0,
          portMin: layout.addressLength / 4,
          flags: 0,
        },
      ];
    }
    case "goto by slot":
      return [
        { kind: "numgen", register: 0, modulus: statement.chains.length, type: "random", offset: 0 },
        toVerdict(anonymous(statement.chains)),
      ];
    case "remember sender":
      return [
        ...load(["saddr"], family),
        { kind: "dynset", set: statement.set, op: "update", key: 0, timeout: 0, flags: 0 },
      ];
    case "masquerade":
      return [{ kind: "masq", flags: natFlag.fullyRandom }];
    case "count":
      return [{ kind: "objref", type: counterObject, name: statement.counter }];
    case "jump":
    case "goto":
      return [{ kind: "verdict", verdict: { kind: statement.kind, chain: statement.chain } }];
    case "return":
    case "drop":
      return [{ kind: "verdict", verdict: { kind: statement.kind } }];
    case "reject":
      return [{ kind: "reject", type: "icmp", code: layout.reject }];
  }
}

function toVerdict(where: { readonly set: string; readonly setId?: number }): Expr {
  return { kind: "lookup", ...where, source: 0, register: verdictRegister, flags: 0 };
}

/** "!=": any of the bits is set; "==": none is. */
function hasBits(bits: number, op: "==" | "!=" = "!="): readonly Expr[] {
  const zero = hostU32Bytes(0);
  return [
    {
      kind: "bitwise",
      source: 0,
      register: 0,
      length: 4,
      mask: hostU32Bytes(bits),
      xor: zero,
      op: "mask-xor",
    },
    { kind: "cmp", register: 0, op, value: zero },
  ];
}

/** The kernel has and-then-xor: `| m` is `& ~m ^ m`. */
function setMark(how: "or" | "xor", mark: number): readonly Expr[] {
  const mask = how === "or" ? ~mark >>> 0 : 0xffffffff;
  return [
    { kind: "meta", register: 0, key: "mark" },
    {
      kind: "bitwise",
      source: 0,
      register: 0,
      length: 4,
      mask: hostU32Bytes(mask),
      xor: hostU32Bytes(mark),
      op: "mask-xor",
    },
    { kind: "setMeta", key: "mark", source: 0 },
  ];
}

function isProtocol(protocol: keyof typeof protocolNumbers): readonly Expr[] {
  return [
    { kind: "meta", register: 0, key: "l4proto" },
    { kind: "cmp", register: 0, op: "==", value: u8Bytes(protocolNumbers[protocol]) },
  ];
}

/** Whole bytes of a prefix are compared as they are; anything else is masked first. */
function inNetwork(statement: Extract<Statement, { kind: "address" }>, family: NftFamily): readonly Expr[] {
  const layout = layouts[family];
  const op = statement.not ? "!=" : "==";
  const address = addressText(networkAddress(statement.network));
  const bits = prefixLength(statement.network);
  const offset = layout[statement.field];
  if (bits > 0 && bits % 8 === 0) {
    return [
      { kind: "payload", register: 0, base: "network", offset, length: bits / 8 },
      { kind: "cmp", register: 0, op, value: address.slice(0, bits / 8) },
    ];
  }
  const length = layout.addressLength;
  const mask = maskOf(bits, length);
  return [
    { kind: "payload", register: 0, base: "network", offset, length },
    { kind: "bitwise", source: 0, register: 0, length, mask, xor: "\0".repeat(length), op: "mask-xor" },
    { kind: "cmp", register: 0, op, value: address },
  ];
}

function maskOf(bits: number, length: number): Bytes {
  const bytes = Array.from({ length }, (_, i) => (0xff00 >> Math.min(8, Math.max(0, bits - 8 * i))) & 255);
  return String.fromCharCode(...bytes);
}

/** The fields of a concatenated key, one after the other from register 0. */
function load(fields: readonly Field[], family: NftFamily): readonly Expr[] {
  let register = 0;
  return fields.map((field) => {
    const at = register;
    register += fieldWidth(field, family);
    return loadField(field, at, family);
  });
}

function loadField(field: Field, register: number, family: NftFamily): Expr {
  const layout = layouts[family];
  switch (field) {
    case "saddr":
    case "daddr":
      return {
        kind: "payload",
        register,
        base: "network",
        offset: layout[field],
        length: layout.addressLength,
      };
    case "l4proto":
      return { kind: "meta", register, key: "l4proto" };
    case "dport":
      return { kind: "payload", register, base: "transport", offset: 2, length: 2 };
  }
}

function fieldWidth(field: Field, family: NftFamily): number {
  return field === "saddr" || field === "daddr" ? layouts[family].addressLength / 4 : 1;
}

function widthOf(fields: readonly Field[], family: NftFamily): number {
  return fields.reduce((sum, field) => sum + fieldWidth(field, family), 0);
}

/** A prefix is compared without the zeros that would end a whole name. */
function interfaceName({ name, prefix }: Extract<Statement, { kind: "iifname" }>): Bytes {
  return prefix ? Buffer.from(name, "utf8").toString("latin1") : paddedText(name, interfaceNameLength);
}
