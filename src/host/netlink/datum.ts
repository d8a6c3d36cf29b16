// What registers, maps and rules of nf_tables hold: plain bytes and verdicts.
import {
  attributes,
  type Codec,
  field,
  i32be,
  optional,
  raw,
  text,
  u32be,
  writeAttribute,
} from "./attributes.ts";
import type { Bytes } from "./bytes.ts";

/** The first of one or more 32-bit registers, 0 to 15; -1 is the verdict register. */
export type Register = number;

export const verdictRegister: Register = -1;

export type Verdict =
  | { readonly kind: "accept" | "drop" | "continue" | "break" | "return" }
  | { readonly kind: "jump" | "goto"; readonly chain: string };

/** What a map holds, or a rule loads: plain bytes or a verdict. */
export type Datum = Bytes | Verdict;

// The kernel numbers groups of four registers 1 to 4 and single ones 8 to 23, and reports the former where possible.
export const register: Codec<Register> = {
  write: (out, index) => out.u32be(index < 0 ? 0 : index % 4 === 0 ? 1 + index / 4 : 8 + index),
  read: (from, start, end) => {
    const number = u32be.read(from, start, end);
    if (number === undefined || (number > 4 && number < 8) || number > 23) return undefined;
    return number === 0 ? verdictRegister : number <= 4 ? (number - 1) * 4 : number - 8;
  },
};

const verdictCodes = { drop: 0, accept: 1, continue: -1, break: -2, jump: -3, goto: -4, return: -5 } as const;
const verdictKinds = new Map(
  Object.entries(verdictCodes).map(([kind, code]) => [code as number, kind as Verdict["kind"]]),
);
const verdictFields = attributes({ code: field(1, i32be), chain: optional(2, text) });

const verdict: Codec<Verdict> = {
  nested: true,
  write(out, value) {
    const code = out.begin(1);
    out.u32be(verdictCodes[value.kind]);
    out.end(code);
    if (value.kind !== "jump" && value.kind !== "goto") return;
    const chain = out.begin(2);
    out.text(value.chain);
    out.end(chain);
  },
  read(from, start, end) {
    const value = verdictFields.read(from, start, end);
    const kind = value === undefined ? undefined : verdictKinds.get(value.code);
    if (value === undefined || kind === undefined) return undefined;
    if (kind === "jump" || kind === "goto") return { kind, chain: value.chain ?? "" };
    return { kind };
  },
};

const datumFields = attributes({ value: optional(1, raw), verdict: optional(2, verdict) });

export const datum: Codec<Datum> = {
  nested: true,
  write(out, value) {
    if (typeof value === "string") writeAttribute(out, 1, raw, value);
    else writeAttribute(out, 2, verdict, value);
  },
  read(from, start, end) {
    const value = datumFields.read(from, start, end);
    return value?.value ?? value?.verdict;
  },
};

/** Plain bytes only. */
export const bytes: Codec<Bytes> = {
  nested: true,
  write: (out, value) => writeAttribute(out, 1, raw, value),
  read: (from, start, end) => datumFields.read(from, start, end)?.value,
};
