// Checks one node: its kernel, its settings, and what its daemon reports. Pure.

import type { Family } from "../model/address.ts";
import { printProblem } from "../model/problem.ts";
import type { SysctlTarget } from "../model/sysctl.ts";
import { fillingShare, fullShare, limitText } from "../observe/limits.ts";
import type { Status } from "../observe/status/status.ts";

export type Check = {
  readonly name: string;
  /** warning: works, but needs attention; failed: Services may not work on this node. */
  readonly result: "ok" | "warning" | "failed";
  /** One line each; the first is what matters most. */
  readonly details: readonly string[];
};

/** What was read on the node. */
export type NodeFacts = {
  readonly status: Status;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** As `uname -r` prints it. */
  readonly release: string;
  /** Why the mode cannot run here; null if it can. */
  readonly obstacle: string | null;
  /** What the mode lacks here that an operator can provide. */
  readonly missing: readonly string[];
  /** Kernel modules that the mode uses. */
  readonly modules: readonly string[];
  readonly loadedModules: ReadonlySet<string>;
  /** Settings that the configuration and the mode require. */
  readonly targets: readonly SysctlTarget[];
  /** Bridges with interfaces, such as cni0. */
  readonly bridges: readonly string[];
  /** Text of a file below /proc or /sys, in the network namespace of the node; null: it does not exist. */
  readonly read: (file: string) => string | null;
  readonly span: (ms: number) => string;
};

export function checksOf(facts: NodeFacts): readonly Check[] {
  const { status } = facts;
  return [
    daemonCheck(facts),
    kernelCheck(facts),
    modulesCheck(facts),
    sysctlCheck(facts),
    conntrackCheck(facts),
    ...(status.families.length === 0 ? [] : [syncCheck(facts), driftCheck(facts)]),
    watchCheck(facts),
    refusedCheck(status),
    problemCheck(status),
  ];
}

/** 0: all is well; 3: warnings; 4: a check failed. */
export function exitCodeOf(checks: readonly Check[]): 0 | 3 | 4 {
  if (checks.some(({ result }) => result === "failed")) return 4;
  return checks.some(({ result }) => result === "warning") ? 3 : 0;
}

export function printChecks({ node, mode, version }: Status, checks: readonly Check[]): string {
  const rows = checks.flatMap(({ name, result, details }) =>
    details.map((detail, i) =>
      i === 0 ? `${result.padEnd(9)} ${name.padEnd(10)} ${detail}` : `${"".padEnd(20)} ${detail}`,
    ),
  );
  return `${[`${node}, ${mode} mode, ${version}`, ...rows].join("\n")}\n`;
}

function daemonCheck({ status: { health, waits, startedAt }, now, span }: NodeFacts): Check {
  const up = `running for ${span(now - startedAt)}`;
  if (waits !== null)
    return check("daemon", "warning", `starting: waits ${span(now - waits.since)} for ${waits.for}`);
  const reasons = health?.reasons.map(({ kind, message }) => `${kind}: ${message}`) ?? [];
  if (health?.healthy === false) return check("daemon", "failed", "unhealthy", ...reasons);
  return reasons.length === 0
    ? check("daemon", "ok", `${up}, healthy`)
    : check("daemon", "warning", `${up}, healthy, but:`, ...reasons);
}

function kernelCheck({ release, obstacle, status: { mode } }: NodeFacts): Check {
  return obstacle === null
    ? check("kernel", "ok", `Linux ${release} can run ${mode} mode`)
    : check("kernel", "failed", obstacle);
}

/** The kernel loads modules by itself, and does not list those that are built in: only `missing` is a finding. */
function modulesCheck({ modules, loadedModules, missing }: NodeFacts): Check {
  if (missing.length > 0) return check("modules", "warning", ...missing);
  const loaded = modules.filter((name) => loadedModules.has(name));
  const builtIn = modules.filter((name) => !loadedModules.has(name));
  return check(
    "modules",
    "ok",
    [
      ...(loaded.length === 0 ? [] : [`loaded: ${loaded.join(", ")}`]),
      ...(builtIn.length === 0 ? [] : [`built in: ${builtIn.join(", ")}`]),
    ].join("; "),
  );
}

const forwarding: Readonly<Record<Family, string>> = {
  ipv4: "/proc/sys/net/ipv4/ip_forward",
  ipv6: "/proc/sys/net/ipv6/conf/all/forwarding",
};

const bridge: Readonly<Record<Family, string>> = {
  ipv4: "/proc/sys/net/bridge/bridge-nf-call-iptables",
  ipv6: "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
};

function sysctlCheck({ targets, bridges, read, status: { families } }: NodeFacts): Check {
  const differing = targets.flatMap(({ file, value, when }) => {
    const current = numberIn(read(file));
    const isMet = current === null || (when === "below" ? current >= value : current === value);
    const wanted = when === "below" ? `at least ${value}` : value;
    return isMet ? [] : [`${settingName(file)} is ${current}, must be ${wanted}`];
  });
  const closed = families.flatMap((family) =>
    numberIn(read(forwarding[family])) === 0
      ? [`${settingName(forwarding[family])} is 0: packets to pods on other nodes are not forwarded`]
      : [],
  );
  const bypassed = families.flatMap((family) =>
    bridges.length > 0 && numberIn(read(bridge[family])) !== 1
      ? [
          `${settingName(bridge[family])} is not 1: packets between pods on ${bridges.join(", ")} bypass the rules`,
        ]
      : [],
  );
  const found = [...differing, ...closed, ...bypassed];
  return found.length === 0
    ? check("sysctls", "ok", `${targets.length} as configured, forwarding on`)
    : check("sysctls", "warning", ...found);
}

/** `net.ipv4.ip_forward`, as sysctl(8) writes it. */
function settingName(file: string): string {
  return file.startsWith("/proc/sys/") ? file.slice("/proc/sys/".length).replaceAll("/", ".") : file;
}

function numberIn(text: string | null): number | null {
  return text === null || text.trim() === "" ? null : Number(text);
}

function conntrackCheck({ read }: NodeFacts): Check {
  const folder = "/proc/sys/net/netfilter";
  const [count, max] = ["count", "max"].map((name) => numberIn(read(`${folder}/nf_conntrack_${name}`)));
  if (count == null || max == null) return check("conntrack", "warning", "connection tracking is not in use");
  const share = max === 0 ? 0 : count / max;
  const text = max === 0 ? `${count} entries` : limitText({ unit: "entries", used: count, limit: max });
  if (share >= fullShare)
    return check(
      "conntrack",
      "failed",
      `${text}: new connections are dropped; turnout doctor flows shows what fills it`,
    );
  return share >= fillingShare
    ? check(
        "conntrack",
        "warning",
        `${text}: raise conntrack.maxPerCore; turnout doctor flows shows what fills it`,
      )
    : check("conntrack", "ok", text);
}

function syncCheck({ status: { families, lastSuccess, syncs }, now, span }: NodeFacts): Check {
  const failing = families.flatMap((family) => {
    const last = syncs.find((sync) => sync.family === family);
    return last?.outcome.kind === "failed"
      ? [`${family}: the last Sync failed: ${last.outcome.message}`]
      : [];
  });
  const waiting = families.filter((family) => lastSuccess[family] === undefined);
  if (failing.length > 0) return check("sync", "failed", ...failing);
  if (waiting.length > 0) return check("sync", "warning", `no Sync yet: ${waiting.join(", ")}`);
  const times = families.map((family) => `${family} ${span(now - lastSuccess[family]!)} ago`);
  return check("sync", "ok", `applied: ${times.join(", ")}`);
}

const hourMs = 3_600_000;

function driftCheck({ status: { drift, compared = {}, families }, now, span }: NodeFacts): Check {
  const recent = drift.filter(({ at }) => now - at < hourMs);
  const times = families.flatMap((family) => compared[family] ?? []);
  const last = times.length === 0 ? "" : `; compared with the kernel ${span(now - Math.min(...times))} ago`;
  if (recent.length === 0) return check("drift", "ok", `none in the last hour${last}`);
  return check(
    "drift",
    "warning",
    ...recent
      .slice(0, mostLines)
      .map(
        ({ at, family, differences, what }) =>
          `${span(now - at)} ago, ${family}: ${differences} repaired: ${what}`,
      ),
  );
}

function watchCheck({ status: { watches, health, source }, now, span }: NodeFacts): Check {
  const failing = Object.entries(watches).flatMap(([kind, { failing: isFailing, lastError }]) =>
    isFailing
      ? [`${kind}: ${lastError?.message ?? "requests fail"}, ${span(now - (lastError?.at ?? now))} ago`]
      : [],
  );
  if (failing.length > 0) return check("watches", "warning", ...failing);
  const ages = Object.values(health?.watchAges ?? {});
  const silence = ages.length === 0 ? "" : `, last data at most ${span(Math.max(...ages))} ago`;
  return check("watches", "ok", `${source}${silence}`);
}

const mostLines = 5;

function refusedCheck({ problems }: Status): Check {
  return listed(
    "refused",
    problems.filter(({ kind }) => kind === "refused"),
    "no object is refused by the kernel",
  );
}

function problemCheck({ problems }: Status): Check {
  return listed(
    "problems",
    problems.filter(({ kind }) => kind !== "refused"),
    "none",
  );
}

function listed(name: string, problems: Status["problems"], none: string): Check {
  if (problems.length === 0) return check(name, "ok", none);
  const more = problems.length - mostLines;
  const rest = more > 0 ? [`and ${more} more; turnout status lists them`] : [];
  return check(name, "warning", ...problems.slice(0, mostLines).map(printProblem), ...rest);
}

function check(name: string, result: Check["result"], ...details: readonly string[]): Check {
  return { name, result, details };
}
