// How what two programs in ipvs mode left in a kernel differs, line by line.
import type { Rules } from "./record.ts";

export type Difference = {
  /** The command that printed it. */
  readonly listing: string;
  readonly who: "kube-proxy" | "turnout";
  readonly line: string;
};

export function differences(theirs: Rules, ours: Rules): Difference[] {
  return Object.keys(theirs).flatMap((listing) => {
    const [a, b] = [linesOf(listing, theirs[listing]!), linesOf(listing, ours[listing] ?? "")];
    return [
      ...without(a, b).map((line) => of("kube-proxy", line)),
      ...without(b, a).map((line) => of("turnout", line)),
    ];

    function of(who: Difference["who"], line: string): Difference {
      return { listing, who, line };
    }
  });
}

/** What of the first the second lacks. */
function without(some: readonly string[], others: readonly string[]): string[] {
  const there = new Set(others);
  return some.filter((line) => !there.has(line));
}

/** Lines that do not depend on time or randomness; rules contain their position in their chain. */
function linesOf(listing: string, text: string): string[] {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  if (listing.includes("tables-save")) return rulesOf(lines);
  if (listing.startsWith("ip -o"))
    return lines.map((line) => line.replace(/^\d+: /, "").replace(/\s+/g, " "));
  return lines.map((line) => line.replace(/ (bucketsize|initval) \S+/g, ""));
}

function rulesOf(lines: readonly string[]): string[] {
  const counts = new Map<string, number>();
  let table = "";
  return lines.map((line) => {
    if (line.startsWith("*")) table = line.slice(1);
    const chain = /^-A (\S+)/.exec(line)?.[1];
    if (chain === undefined) return `${table} ${line.replace(/ \[\d+:\d+\]$/, "")}`;
    const place = (counts.get(`${table} ${chain}`) ?? 0) + 1;
    counts.set(`${table} ${chain}`, place);
    // kube-proxy writes these in random order.
    return chain === "KUBE-IPVS-OUT-FILTER" ? `${table} ${line}` : `${table} ${place} ${line}`;
  });
}
