// Compares two iptables saves line by line, the order of Services aside, which kube-proxy leaves to chance.

/** Lines that only one of them has, each with its table; empty when they agree. */
export function differingLines(reference: string, ours: string): readonly string[] {
  const [a, b] = [normalised(reference), normalised(ours)];
  return [...missing(a, b, "only kube-proxy"), ...missing(b, a, "only ours")];
}

/** Chains in which every Service has its own lines: their order means nothing. */
const shared = new Set(["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"]);

/** The rules that lead to the node ports: after all others, in any order, since it is random in kube-proxy. */
const lastRules = "NOTE: this must be the last rule";

/** Every rule with its table, and with its place in its chain where that matters. */
function normalised(save: string): ReadonlySet<string> {
  const lines = new Set<string>();
  const chains = new Map<string, string[]>();
  let table = "";
  for (const line of save.split("\n")) {
    if (line.startsWith("*")) table = line.slice(1);
    const chain = /^-A (\S+)/.exec(line)?.[1];
    if (line.startsWith(":")) lines.add(`${table} ${line.replace(/ \[.*$/, "")}`);
    if (chain === undefined) continue;
    const rules = chains.get(`${table} ${chain}`) ?? [];
    chains.set(`${table} ${chain}`, [...rules, line]);
  }
  for (const [chain, rules] of chains)
    for (const text of placed(chain, rules)) lines.add(`${chain.split(" ")[0]} ${text}`);
  return lines;
}

function placed(chain: string, rules: readonly string[]): readonly string[] {
  if (!shared.has(chain.split(" ")[1]!)) return rules.map((rule, i) => `${rule} (rule ${i + 1})`);
  const ordinary = rules.findLastIndex((rule) => !rule.includes(lastRules));
  return rules.map((rule, i) => (rule.includes(lastRules) && i < ordinary ? `${rule} (too early)` : rule));
}

function missing(from: ReadonlySet<string>, other: ReadonlySet<string>, whose: string): readonly string[] {
  return [...from].filter((line) => !other.has(line)).map((line) => `${whose}: ${line}`);
}
