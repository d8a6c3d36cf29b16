// Which back end the tables of this host are in, where both are installed: the kubelet and earlier proxies left a hint.
import { type Finished, run, type Start } from "./command.ts";

export type BackEnd = "nf_tables" | "legacy";

/**
 * Starts the programs of the back end that is in use. Two proxies or a proxy and a kubelet that work on different ones
 * would both have rules in force, and neither would see the other's. Without a hint the installed default is right.
 * Decided once for each `start`: all parts of a process work on the same back end.
 */
export function detectBackEnd(start: Start): Promise<Start> {
  let detected = decided.get(start);
  if (detected === undefined) {
    detected = detect(start);
    decided.set(start, detected);
  }
  return detected;
}

const decided = new WeakMap<Start, Promise<Start>>();

async function detect(start: Start): Promise<Start> {
  const inUse = await backEndInUse(start);
  if (inUse === null || inUse === (await backEndOf(start, "iptables"))) return start;
  const variant = inUse === "nf_tables" ? "$1-nft" : "$1-legacy";
  const named = (program: string) => program.replace(/^(ip6?tables)/, variant);
  if ((await backEndOf(start, named("iptables"))) !== inUse) return start;
  return (program, ...rest) => start(named(program), ...rest);
}

/** The back end of a program, which its version names and which stays; null: it cannot be run. */
export async function backEndOf(
  start: Start,
  program: string,
  signal?: AbortSignal,
): Promise<BackEnd | null> {
  const ofStart = known.get(start) ?? new Map<string, BackEnd>();
  known.set(start, ofStart);
  const found = ofStart.get(program) ?? (await printedBackEnd(start, program, signal));
  if (found !== null) ofStart.set(program, found);
  return found;
}

const known = new WeakMap<Start, Map<string, BackEnd>>();

async function printedBackEnd(
  start: Start,
  program: string,
  signal: AbortSignal | undefined,
): Promise<BackEnd | null> {
  const version = await attempt(start, program, ["--version"], signal);
  if (version === null || version.code !== 0) return null;
  return version.stdout.includes("nf_tables") ? "nf_tables" : "legacy";
}

/** What the kubelet works on counts more than what an earlier proxy did. */
const hints = [/^:KUBE-(IPTABLES-HINT|KUBELET-CANARY) /m, /^:KUBE-PROXY-CANARY /m];

async function backEndInUse(start: Start): Promise<BackEnd | null> {
  const inNfTables = await mangleTables(start, "nft");
  const inLegacy = (await hasLegacyTables(start)) ? await mangleTables(start, "legacy") : "";
  for (const hint of hints) {
    if (hint.test(inNfTables)) return "nf_tables";
    if (hint.test(inLegacy)) return "legacy";
  }
  return null;
}

/** Checked first, since listing legacy tables would create them. */
async function hasLegacyTables(start: Start): Promise<boolean> {
  const names = await attempt(start, "cat", ["/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"]);
  return names?.stdout.includes("mangle") ?? false;
}

async function mangleTables(start: Start, variant: "nft" | "legacy"): Promise<string> {
  const listings = ["iptables", "ip6tables"].map((program) =>
    attempt(start, `${program}-${variant}-save`, ["-t", "mangle"]),
  );
  return (await Promise.all(listings)).map((listing) => listing?.stdout ?? "").join("");
}

async function attempt(
  start: Start,
  program: string,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<Finished | null> {
  return run(start, program, args, "", signal).catch(() => null);
}
