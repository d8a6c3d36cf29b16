// The configuration of a target: that of a file, else that of the node's daemon, else the defaults.

import { readFileSync } from "node:fs";
import { type ConfigFile, completeConfig } from "../config/complete.ts";
import { inMode, type ValidConfig } from "../config/config.ts";
import { type ModeName, modes } from "../config/modes.ts";
import { defaultConfig } from "../explain/node-routes.ts";
import { parseCidr } from "../model/address.ts";
import { UsageError, whyUnreadable } from "./usage-error.ts";

/** `fromDaemon`: the configuration of the daemon, where one is read; otherwise null. */
export function targetConfig(flags: ConfigFlags, fromDaemon: string | null): ValidConfig {
  const file = flags.config
    ? readConfig(flags.config)
    : fromDaemon === null
      ? null
      : { name: "daemon", text: fromDaemon };
  const config = file === null ? defaultConfig(flags.mode ?? defaultMode) : completed(file);
  return withClusterCIDR(inMode(config, flags.mode ?? config.mode), flags["cluster-cidr"]);
}

type ConfigFlags = {
  readonly config?: string | undefined;
  readonly mode?: ModeName | undefined;
  readonly "cluster-cidr"?: string | undefined;
};

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

const defaultMode: ModeName = "nftables";

/** The default first. */
export const modeNames: readonly ModeName[] = [
  defaultMode,
  ...(Object.keys(modes) as ModeName[]).filter((name) => name !== defaultMode),
];
