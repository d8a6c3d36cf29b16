// Turnout's own flags of the daemon, and the environment variables that set them where only the environment can be changed.

import { trafficSettings } from "../config/resolve/settings.ts";
import { milliseconds, parseDuration } from "../config/units/duration.ts";
import { parseQuantity, quantityValue } from "../config/units/quantity.ts";
import type { DaemonOptions } from "../daemon/daemon.ts";
import type { HistorySettings } from "../daemon/history.ts";
import { filesHint } from "../inspect/target.ts";
import { modeNames } from "../inspect/target-config.ts";
import { UsageError } from "../inspect/usage-error.ts";
import type { Variables } from "../model/environment.ts";
import { defaultStatusSocket } from "../observe/status/status.ts";
import { parsePageAddress } from "../page/address.ts";
import { parseSourceSpec, type SourceSpec, userAgentOf } from "../sources/index.ts";
import { checkedValue, type Flag, type Values } from "./flags.ts";

const defaultHistory = { size: "8Mi", age: "24h" };

export const ownFlags = [
  {
    name: "source",
    value: "SOURCE",
    suggestions: ["files:", "kubeconfig:", "api"],
    example: "files:examples/shop",
    fallback: "api",
    description: "where cluster state comes from: api, kubeconfig:PATH, files:PATH[,PATH…] or a URL",
  },
  {
    name: "mode",
    value: "MODE",
    choices: modeNames,
    example: "nftables",
    description: "short for --proxy-mode",
  },
  {
    name: "nftables-ownership",
    value: "OWNERSHIP",
    choices: ["plain", "owned"],
    fallback: "plain",
    description: "plain: changes by other programs are repaired; owned: the kernel refuses them",
  },
  {
    name: "status-socket",
    value: "PATH",
    example: "/run/turnout/status.sock",
    fallback: defaultStatusSocket,
    description: "socket that turnout status connects to; empty: none",
  },
  {
    name: "config-changes",
    value: "ACTION",
    choices: ["restart", "apply", "apply-live-only"],
    fallback: "restart",
    description:
      "when the file of --config changes: restart exits with 1, as kube-proxy does; apply updates in place where possible and otherwise restarts; apply-live-only only updates in place",
  },
  {
    name: "health-answers",
    value: "ANSWERS",
    choices: ["honest", "upstream"],
    fallback: "honest",
    description: "answers of the health checks; upstream: exactly those of kube-proxy",
  },
  {
    name: "traffic",
    value: "WHAT",
    choices: trafficSettings,
    fallback: "off",
    description:
      "count connections, packets and bytes of Services, for turnout top and metrics; endpoints: also of each endpoint",
  },
  {
    name: "history-size",
    value: "BYTES",
    example: "8Mi",
    fallback: defaultHistory.size,
    description: "memory for the history of changes (turnout history); 0: no history",
  },
  {
    name: "history-age",
    value: "DURATION",
    example: "24h",
    fallback: defaultHistory.age,
    description: "changes older than this are dropped from the history",
  },
  {
    name: "history-dir",
    value: "PATH",
    example: "/var/lib/turnout",
    description: "directory in which the history survives a restart; without it, it is kept in memory only",
  },
  {
    name: "page-address",
    value: "ADDRESS",
    example: "127.0.0.1:10270",
    description:
      "serve the page on this loopback address; turnout page prints its URL with the token; without it there is no listener",
  },
  {
    name: "dead-tcp",
    value: "ACTION",
    choices: ["keep", "reset"],
    fallback: "keep",
    description:
      "connections to an endpoint that is in no Service any more; reset: their conntrack entries are deleted, so that a client is reset when it sends next and another endpoint is ready; keep: they hang until the client gives up, as with kube-proxy",
  },
] as const satisfies readonly Flag[];

export type OwnValues = Values<typeof ownFlags>;

/** `TURNOUT_STATUS_SOCKET` for `--status-socket`. */
export function variableOf({ name }: Pick<Flag, "name">): string {
  return `TURNOUT_${name.toUpperCase().replaceAll("-", "_")}`;
}

/** What the variables set, as the flags would. Throws UsageError with the name of the variable. */
export function fromEnvironment(environment: Variables, version: string): OwnValues {
  const values: Record<string, string> = {};
  for (const flag of ownFlags) {
    const variable = variableOf(flag);
    const text = Object.hasOwn(environment, variable) ? environment[variable] : undefined;
    if (text !== undefined) values[flag.name] = checkedValue(flag, text, variable);
  }
  if (values.source !== undefined) sourceOf(values.source, version, `${variableOf({ name: "source" })}: `);
  historyOf(values, (name) => variableOf({ name }));
  const pageAddress = variableOf({ name: "page-address" });
  if (values["page-address"] !== undefined) checkedPageAddress(values["page-address"], pageAddress);
  return values;
}

/** What the own flags set in the daemon; `--mode` is passed on as `--proxy-mode`. */
export function ownOptions(flags: OwnValues, version: string): Partial<DaemonOptions> {
  return {
    owned: flags["nftables-ownership"] === "owned",
    healthAnswers: flags["health-answers"] ?? "honest",
    configChanges: flags["config-changes"] ?? "restart",
    resetDeadTcp: flags["dead-tcp"] === "reset",
    statusSocket: flags["status-socket"] ?? defaultStatusSocket,
    traffic: flags.traffic ?? "off",
    history: historyOf(flags, (name) => `--${name}`),
    pageAddress: checkedPageAddress(flags["page-address"] ?? ""),
    ...(flags.source === undefined ? {} : { source: sourceOf(flags.source, version) }),
  };
}

/** `label` names a flag, or the variable that sets it. */
function historyOf(flags: OwnValues, label: (name: string) => string): HistorySettings {
  const size = parseQuantity(flags["history-size"] ?? defaultHistory.size);
  if (!size.ok) throw new UsageError(`${label("history-size")}: ${size.reason}`);
  const bytes = Number(quantityValue(size.value));
  if (bytes < 0) throw new UsageError(`${label("history-size")} must not be negative; 0 keeps no history`);
  const age = parseDuration(flags["history-age"] ?? defaultHistory.age);
  if (!age.ok) throw new UsageError(`${label("history-age")}: ${age.reason}`);
  if (age.value <= 0n)
    throw new UsageError(
      `${label("history-age")} must be positive, for example 24h; ${label("history-size")}=0 keeps no history`,
    );
  return { bytes, ageMs: milliseconds(age.value), directory: flags["history-dir"] || null };
}

/** Empty: none. */
function checkedPageAddress(text: string, label = "--page-address"): string {
  if (text === "" || parsePageAddress(text) !== null) return text;
  throw new UsageError(
    `${label} must be a loopback address, for example 127.0.0.1:10270, not ${JSON.stringify(text)}`,
  );
}

/** The arguments for kube-proxy's reader, in which a later `--proxy-mode` wins. */
export function withMode({ mode }: OwnValues, rest: readonly string[]): readonly string[] {
  return mode === undefined ? rest : [`--proxy-mode=${mode}`, ...rest];
}

/** `prefix` of the message: the variable, where the text comes from one. */
function sourceOf(text: string, version: string, prefix = ""): SourceSpec {
  try {
    return parseSourceSpec(text, userAgentOf(version));
  } catch (error) {
    throw new UsageError(`${prefix}${(error as Error).message}${filesHint(text)}`);
  }
}
