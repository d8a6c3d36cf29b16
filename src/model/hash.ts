// A hash of some bytes, for tables that compare what they find.

export function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0;
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ bytes[at]!, 16777619);
  return hash;
}
