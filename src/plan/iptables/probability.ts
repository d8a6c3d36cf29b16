// Chances of one in n as text: what kube-proxy writes, and what the kernel's 31-bit fraction prints back.

/** 1/n with ten decimals, as C's printf rounds. */
export function writtenProbability(oneIn: number): string {
  // 1/2048 lies exactly between two texts: printf takes the even one, toFixed the larger.
  return oneIn === 2048 ? "0.0004882812" : (1 / oneIn).toFixed(10);
}

/** What `iptables-save` shows of it: the nearest multiple of 2⁻³¹ with eleven decimals, ties to even. */
export function savedProbability(oneIn: number): string {
  const known = saved.get(oneIn);
  if (known !== undefined) return known;
  const fraction = BigInt(Math.round(0x80000000 * Number(writtenProbability(oneIn))));
  const text = elevenDecimals(fraction);
  saved.set(oneIn, text);
  return text;
}

const saved = new Map<number, string>();

function elevenDecimals(fraction: bigint): string {
  const scaled = fraction * 100_000_000_000n;
  const floor = scaled >> 31n;
  const twiceRest = (scaled & 0x7fffffffn) * 2n;
  const half = 0x80000000n;
  const up = twiceRest > half || (twiceRest === half && (floor & 1n) === 1n);
  const digits = (up ? floor + 1n : floor).toString().padStart(12, "0");
  return `${digits.slice(0, -11)}.${digits.slice(-11)}`;
}
