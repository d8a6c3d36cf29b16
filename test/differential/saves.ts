// Compares two iptables saves line by line, the order of Services aside, which kube-proxy leaves to chance.

/** Lines that only one of them has, each with its table; empty when they agree. */
export function differingLines(reference: string, ours: string): readonly string[] {
  const [a, b] = [normalised(reference), normalised(ours)];
  return [...missing(a, b, "only kube-proxy"), ...missing(b, a, "only ours")];
}

/** Chains in which every Service has lines of its own: their order says nothing. */
const shared = new Set(["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"]);

/** Every rule with its table, and with its place in its chain where that matters. */
function normalised(save: string): ReadonlySet<string> {
  const lines = new Set<string>();
  const places = new Map<string, number>();
  let table = "";
  for (const line of save.split("\n")) {
    if (line.startsWith("*")) table = line.slice(1);
    const chain = /^-A (\S+)/.exec(line)?.[1];
    if (line.startsWith(":")) lines.add(`${table} ${line.replace(/ \[.*$/, "")}`);
    if (chain === undefined) continue;
    const place = (places.get(`${table} ${chain}`) ?? 0) + 1;
    places.set(`${table} ${chain}`, place);
    // The rule that leads to the node ports must come last, whatever comes before it.
    const last = line.includes("NOTE: this must be the last rule");
    lines.add(shared.has(chain) && !last ? `${table} ${line}` : `${table} ${line} (rule ${place})`);
  }
  return lines;
}

function missing(from: ReadonlySet<string>, other: ReadonlySet<string>, whose: string): readonly string[] {
  return [...from].filter((line) => !other.has(line)).map((line) => `${whose}: ${line}`);
}
