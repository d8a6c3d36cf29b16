// Log lines of a start: version, mode and its origin, what is waited for, this node's settings.

import type { ValidConfig } from "../../config/config.ts";
import type { Resolved } from "../../config/resolve/resolve.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { Family } from "../../model/address.ts";
import type { ClusterNode } from "../../model/snapshot.ts";
import { familyLabels } from "../../observe/family.ts";
import type { Log } from "../../observe/log/log.ts";
import type { DaemonOptions } from "../daemon.ts";

export function logStart({ version, config, configFile }: DaemonOptions, log: Log): void {
  log.info("Version info", { version });
  log.info("Node.js settings", { version: process.version, NODE_OPTIONS: process.env.NODE_OPTIONS ?? "" });
  log.info("Using proxy mode", { mode: config.mode, reason: modeReason(config, configFile?.path ?? null) });
}

function modeReason({ modeDefaulted }: ValidConfig, file: string | null): string {
  if (modeDefaulted) return "default, because mode is not set";
  return file === null ? "set by a flag" : `set in ${file}`;
}

/** Before the first answer, and after it for what the Node lacks. */
export function logWait(what: string, withinMs: number | null, log: Log): void {
  const limit = withinMs === null ? {} : { timeout: `${withinMs / 1000}s` };
  log.info("Waiting", { for: what, ...limit });
}

export function logNode({ name, addresses, podCIDRs, zone }: ClusterNode, log: Log): void {
  log.info("Found the Node", { node: name, addresses, podCIDRs, zone });
}

/** One line for each family that is served; where pod traffic cannot be recognised, one more. */
export function logSettings(
  { settings }: Resolved,
  config: Pick<ValidConfig, "detectLocalMode">,
  families: readonly Family[],
  log: Log,
): void {
  for (const family of families) {
    const { nodeIP, detector, nodePortAddresses } = settings[family];
    log.info("Using IP family", {
      family: familyLabels[family],
      nodeIP,
      localDetector: detectorText(detector),
      nodePortAddresses: nodePortAddresses.kind === "all" ? "all" : nodePortAddresses.cidrs,
    });
    if (detector.kind === "none")
      log.info(`No ${config.detectLocalMode === "NodeCIDR" ? "pod" : "cluster"} CIDR defined`, {
        family: familyLabels[family],
        detectLocalMode: config.detectLocalMode,
        effect: "traffic from pods of this node is not recognised as local",
      });
  }
}

function detectorText(detector: FamilySettings["detector"]): string {
  switch (detector.kind) {
    case "none":
      return "none";
    case "cidr":
      return `source in ${detector.cidr}`;
    case "interface":
      return `interface ${detector.name}`;
    case "interfacePrefix":
      return `interface ${detector.prefix}*`;
  }
}
