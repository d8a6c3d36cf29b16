// Kubernetes quantities (`512`, `64Ki`, `1.5M`, `2e3`), kept in canonical form.
import { type Parsed, parsed, refused } from "./parsed.ts";

/** Canonical text, as the API writes it: `64Ki`, `1500k`. */
export type Quantity = string;

const decimalSuffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const nano = 1_000_000_000n;

export function parseQuantity(text: string): Parsed<Quantity> {
  const match = /^([-+]?)([0-9]*)(?:\.([0-9]*))?([eE][-+]?[0-9]{1,3}|[numkMGTPE]|[KMGTPE]i)?$/.exec(text);
  const digits = match === null ? "" : match[2]! + (match[3] ?? "");
  if (match === null || digits === "" || text.length > 100) {
    return refused(
      `${JSON.stringify(text.slice(0, 100))} is not a quantity: write a number with an optional unit, like 512, 64Ki or 1M`,
    );
  }
  const suffix = match[4] ?? "";
  const size = scale(BigInt(digits), (match[3] ?? "").length, suffix);
  return parsed(canonical(match[1] === "-" ? -size : size, suffix));
}

/** The whole number of units in a canonical quantity, rounded away from zero. */
export function quantityValue(quantity: Quantity): bigint {
  const match = /^(-?)([0-9]+)(.*)$/.exec(quantity)!;
  const size = scale(BigInt(match[2]!), 0, match[3]!);
  const rounded = (size + nano - 1n) / nano;
  return match[1] === "-" ? -rounded : rounded;
}

/** Nano-units of `digits × 10^-decimals × suffix`; what is smaller than one is rounded up. */
function scale(digits: bigint, decimals: number, suffix: string): bigint {
  const binary = suffix === "" ? -1 : binarySuffixes.indexOf(suffix);
  if (binary > 0) return ceilDiv(digits * 1024n ** BigInt(binary) * nano, 10n ** BigInt(decimals));
  const exponent = 9 - decimals + decimalExponent(suffix);
  return exponent >= 0 ? digits * 10n ** BigInt(exponent) : ceilDiv(digits, 10n ** BigInt(-exponent));
}

function decimalExponent(suffix: string): number {
  if (/^[eE][-+]?[0-9]+$/.test(suffix)) return Number(suffix.slice(1));
  return 3 * (decimalSuffixes.indexOf(suffix) - 3);
}

/** No fraction, and the largest unit that allows this. */
function canonical(nanos: bigint, suffix: string): Quantity {
  if (nanos === 0n) return "0";
  const size = nanos < 0n ? -nanos : nanos;
  const sign = nanos < 0n ? "-" : "";
  if (suffix.endsWith("i") && size >= 1024n * nano) return `${sign}${binaryText(ceilDiv(size, nano))}`;
  let step = 0;
  let count = size;
  while (step < decimalSuffixes.length - 1 && count % 1_000n === 0n) {
    count /= 1_000n;
    step++;
  }
  const exponent = 3 * (step - 3);
  const unit = /^[eE][-+]?[0-9]/.test(suffix)
    ? exponent === 0
      ? ""
      : `e${exponent}`
    : decimalSuffixes[step]!;
  return `${sign}${count}${unit}`;
}

function binaryText(size: bigint): string {
  let step = 0;
  let count = size;
  while (step < binarySuffixes.length - 1 && count % 1024n === 0n) {
    count /= 1024n;
    step++;
  }
  return `${count}${binarySuffixes[step]}`;
}

function ceilDiv(a: bigint, b: bigint): bigint {
  return (a + b - 1n) / b;
}
