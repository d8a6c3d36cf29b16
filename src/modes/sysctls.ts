// Kernel settings of a mode, in our network namespace or another.

import { run, starter } from "../host/iptables/command.ts";
import { applySysctls, systemFiles } from "../host/sysctl.ts";
import type { SysctlChange, SysctlTarget } from "../model/sysctl.ts";

/** Elsewhere only a program that starts there sees the files, and reading them first is not worth starting it. */
export async function setSysctls(
  targets: readonly SysctlTarget[],
  netns?: string,
  changed: (change: SysctlChange) => void = () => {},
): Promise<void> {
  if (netns === undefined) applySysctls(targets, systemFiles).forEach(changed);
  else for (const { file, value } of targets) await run(starter({ netns }), "tee", [file], String(value));
}
