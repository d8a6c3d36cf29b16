// Warnings about a valid configuration that does not fit this node.
import { type ConfigWarning, familyWarnings, nodePortWarning } from "../../config/resolve/warnings.ts";
import type { ClusterNode } from "../../model/snapshot.ts";
import type { Log } from "../../observe/log/log.ts";
import type { NodeSettings } from "../node-settings.ts";
import { StartError } from "../start/start-error.ts";

export function warningsOf(
  { config, resolved }: Pick<NodeSettings, "config" | "resolved">,
  node: ClusterNode | null,
  isDualStack: boolean,
): readonly ConfigWarning[] {
  const podCIDRs = node?.podCIDRs ?? [];
  const nodePorts = nodePortWarning(config, podCIDRs, resolved);
  return [
    ...(nodePorts === null ? [] : [{ message: nodePorts, fatal: false }]),
    ...familyWarnings(config, podCIDRs, resolved.nodeIPs.primary, isDualStack),
  ];
}

/** Throws StartError for a fatal one. */
export function reportWarnings(warnings: readonly ConfigWarning[], log: Log): void {
  for (const { message, fatal } of warnings) {
    if (fatal) throw new StartError(`Cannot use this configuration: ${message}`);
    log.error(new Error(message), "Configuration does not fit this node");
  }
}
