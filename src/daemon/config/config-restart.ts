// Whether this node could start with a changed configuration: checked before the daemon exits to be restarted with it.

import type { ValidConfig } from "../../config/config.ts";
import type { Resolved } from "../../config/resolve/resolve.ts";
import { HostError } from "../../host/error.ts";
import { unwritableSysctls } from "../../host/sysctl.ts";
import type { Family } from "../../model/address.ts";
import type { ClusterNode } from "../../model/snapshot.ts";
import type { SysctlTarget } from "../../model/sysctl.ts";
import { modes } from "../../modes/index.ts";
import type { NodeSettings } from "../node-settings.ts";
import { conntrackTargetsOf } from "../start/kernel-settings.ts";
import { warningsOf } from "./config-warnings.ts";

export type CurrentNode = {
  readonly settings: NodeSettings;
  readonly node: ClusterNode | null;
  readonly families: readonly Family[];
};

/** null: it can start. Otherwise the daemon would only exit again and again, and the node would miss every change. */
export async function reasonNotToRestart(next: ValidConfig, today: CurrentNode): Promise<string | null> {
  const { settings, node, families } = today;
  const resolved = settings.resolvedWith(next);
  const fatal = warningsOf({ config: next, resolved }, node, families.length === 2).find(
    (each) => each.fatal,
  );
  if (fatal !== undefined) return fatal.message;
  if (next.detectLocalMode === "NodeCIDR" && (node?.podCIDRs.length ?? 0) === 0)
    return "detectLocalMode NodeCIDR requires podCIDRs, and the Node has none";
  const inForce = new Set(targetsOf(settings.config, settings.resolved).map(printTarget));
  const changed = targetsOf(next, resolved).filter((target) => !inForce.has(printTarget(target)));
  const [locked] = unwritableSysctls(changed);
  if (locked !== undefined)
    return `cannot set ${locked.file} to ${locked.value}: not permitted here; recreate the pod, so that its init container sets it`;
  try {
    await modes[next.mode].check({});
    return null;
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return error.message;
  }
}

function targetsOf(config: ValidConfig, { settings }: Resolved): readonly SysctlTarget[] {
  return [...conntrackTargetsOf(config), ...modes[config.mode].sysctls({ config, settings })];
}

function printTarget({ file, value }: SysctlTarget): string {
  return `${file}=${value}`;
}
