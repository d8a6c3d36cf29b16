// With which configuration a node is looked at: what a file says, else what its daemon says, else the defaults.

import { readFileSync } from "node:fs";
import { type ConfigFile, completeConfig } from "../config/complete.ts";
import { inMode, type ValidConfig } from "../config/config.ts";
import type { ModeName } from "../config/modes.ts";
import { decideBy, defaultConfig } from "../explain/node-routes.ts";
import { parseCidr } from "../model/address.ts";
import { alternatives, UsageError, whyUnreadable } from "./usage-error.ts";

/** Flags by name, without their dashes. */
export type GivenFlags = Readonly<Record<string, string | undefined>>;

/** `told`: the configuration of the daemon that was asked; null without one. */
export function targetConfig(given: GivenFlags, told: string | null): ValidConfig {
  const file = given.config
    ? readConfig(given.config)
    : told === null
      ? null
      : { name: "daemon", text: told };
  const mode = given.mode ? knownMode("mode", given.mode) : null;
  const config = file === null ? defaultConfig(mode ?? "nftables") : completed(file);
  return withClusterCIDR(inMode(config, mode ?? config.mode), given["cluster-cidr"]);
}

function readConfig(path: string): ConfigFile {
  try {
    return { name: path, text: readFileSync(path, "utf8") };
  } catch (error) {
    throw new UsageError(whyUnreadable(path, error));
  }
}

function completed(file: ConfigFile): ValidConfig {
  const config = completeConfig({}, file);
  if (config.ok) return config.config;
  throw new UsageError([config.error, ...config.places].join("; "));
}

function withClusterCIDR(config: ValidConfig, cidrs: string | undefined): ValidConfig {
  if (!cidrs) return config;
  const clusterCIDRs = cidrs.split(",");
  const wrong = clusterCIDRs.find((cidr) => parseCidr(cidr) === null);
  if (wrong !== undefined)
    throw new UsageError(
      `--cluster-cidr must be a network, for example --cluster-cidr=10.0.0.0/8, not ${JSON.stringify(wrong)}`,
    );
  return { ...config, detectLocalMode: "ClusterCIDR", clusterCIDRs };
}

export const modeNames = Object.keys(decideBy) as readonly ModeName[];

/** The mode that a flag names. */
export function knownMode(flag: string, text: string): ModeName {
  const mode = modeNames.find((name) => name === text);
  if (mode !== undefined) return mode;
  throw new UsageError(`--${flag} must be ${alternatives(modeNames)}, not ${JSON.stringify(text)}`);
}
