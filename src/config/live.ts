// Which changes of the configuration a running daemon can put in force, and which need a restart.
import { plainFile, unfoldGiven, type ValidConfig } from "./config.ts";
import type { Plain } from "./file/kinds.ts";

/** One field that differs. */
export type ConfigChange = {
  /** As in the file: `nftables.minSyncPeriod`. */
  readonly field: string;
  readonly from: Plain | undefined;
  readonly to: Plain | undefined;
};

export type Comparison = {
  /** Put in force by `next`. */
  readonly live: readonly ConfigChange[];
  /** Left as they are until a restart. */
  readonly later: readonly ConfigChange[];
  /** The running configuration with the live changes. */
  readonly next: ValidConfig;
};

/** Everything that only settings, pace and log go by; servers, client, sysctls and the mode itself stay. */
const liveFields =
  /^(clusterCIDR|detectLocal(\..*)?|detectLocalMode|logging\.verbosity|nodePortAddresses|(ip|nf)\w+\.(masqueradeAll|minSyncPeriod|syncPeriod))$/;

export function compareConfigs(running: ValidConfig, wanted: ValidConfig): Comparison {
  const changes = changesBetween(plainFile(unfoldGiven(running)), plainFile(unfoldGiven(wanted)), "");
  const isLive = (change: ConfigChange) =>
    running.mode === wanted.mode && liveFields.test(change.field) && !needsNode(change);
  const live = changes.filter(isLive);
  return { live, later: changes.filter((change) => !isLive(change)), next: merged(running, wanted, live) };
}

/** Only a proxy that starts with the Node's pod networks waits for them and watches them. */
function needsNode({ field, from, to }: ConfigChange): boolean {
  return field === "detectLocalMode" && (from === "NodeCIDR" || to === "NodeCIDR");
}

function merged(running: ValidConfig, wanted: ValidConfig, live: readonly ConfigChange[]): ValidConfig {
  const has = (field: string) => live.some((change) => covers(field, change.field));
  // The file keeps these per mode, the configuration once.
  const hasFolded = (name: string) => live.some((change) => change.field.endsWith(`.${name}`));
  return {
    ...running,
    ...(has("clusterCIDR") ? { clusterCIDRs: wanted.clusterCIDRs } : {}),
    ...(has("detectLocal") ? { detectLocal: wanted.detectLocal } : {}),
    ...(has("detectLocalMode") ? { detectLocalMode: wanted.detectLocalMode } : {}),
    ...(hasFolded("masqueradeAll") ? { masqueradeAll: wanted.masqueradeAll } : {}),
    ...(hasFolded("minSyncPeriod") ? { pace: wanted.pace } : {}),
    ...(hasFolded("syncPeriod") ? { syncPeriod: wanted.syncPeriod } : {}),
    ...(has("logging.verbosity")
      ? { logging: { ...running.logging, verbosity: wanted.logging.verbosity } }
      : {}),
    ...(has("nodePortAddresses") ? { nodePortAddresses: wanted.nodePortAddresses } : {}),
  };
}

function covers(field: string, path: string): boolean {
  return path === field || path.startsWith(`${field}.`);
}

type Tree = { readonly [key: string]: Plain | undefined };

function changesBetween(from: Tree, to: Tree, prefix: string): ConfigChange[] {
  const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])].sort();
  return keys.flatMap((key) => {
    const [before, after] = [from[key], to[key]];
    const field = `${prefix}${key}`;
    if (isTree(before) && isTree(after)) return changesBetween(before, after, `${field}.`);
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ field, from: before, to: after }];
  });
}

function isTree(value: Plain | undefined): value is Plain & Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
