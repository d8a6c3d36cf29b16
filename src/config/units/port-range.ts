// A range of ports as kube-proxy writes it: `min-max`, `min+offset`, a single port, or nothing.
import { type Parsed, parsed, refused } from "./parsed.ts";

/** Both ends belong to it. */
export type PortRange = { readonly first: number; readonly last: number };

/** null: any port will do. */
export function parsePortRange(text: string): Parsed<PortRange | null> {
  const match = /^\s*(\d+)(?:\s*([-+])\s*(\d+))?\s*$/.exec(text);
  if (text.trim() === "") return parsed(null);
  if (match === null) {
    return refused(`${JSON.stringify(text)} is not a range of ports, like 300-2000, 300+1700 or 4000`);
  }
  const first = Number(match[1]);
  const second = Number(match[3] ?? first);
  const last = match[2] === "+" ? first + second : second;
  if (last > 65_535) return refused(`${JSON.stringify(text)} reaches beyond port 65535`);
  if (last < first) return refused(`${JSON.stringify(text)} ends before it begins`);
  return parsed(first === 0 ? null : { first, last });
}
