// Kernel settings at start-up: conntrack limits and timeouts, and the OOM score of this process.

import { availableParallelism } from "node:os";
import type { ValidConfig } from "../../config/config.ts";
import {
  conntrackMaxFile,
  conntrackTargets,
  countCpus,
  withoutLimits,
} from "../../config/resolve/conntrack.ts";
import type { TrafficSetting } from "../../config/resolve/settings.ts";
import { HostError } from "../../host/error.ts";
import { applySysctls, isReadOnly, readSysctl, setOomScore, systemFiles } from "../../host/sysctl.ts";
import type { SysctlChange, SysctlTarget } from "../../model/sysctl.ts";
import type { Log } from "../../observe/log/log.ts";

/** Sets the limit on connections and the conntrack timeouts, as configured. */
export function tuneConntrack(config: ValidConfig, log: Log): void {
  warnAboutLimit(config, log);
  for (const change of applySysctls(conntrackTargetsOf(config), systemFiles)) logSysctl(change, log);
}

/** Kernel settings that the section `conntrack` requires on this machine, without those that cannot be set here. */
export function conntrackTargetsOf(config: ValidConfig): readonly SysctlTarget[] {
  const targets = allConntrackTargets(config);
  return isReadOnly(conntrackMaxFile) ? withoutLimits(targets) : targets;
}

export const accountingFile = "/proc/sys/net/netfilter/nf_conntrack_acct";

/** Makes the kernel count packets and bytes of connections that start from now on. The daemon also runs where this is not permitted. */
export function startAccounting(traffic: TrafficSetting, log: Log): void {
  if (traffic === "off") return;
  const target: SysctlTarget = { file: accountingFile, value: 1, when: "differs", reason: "--traffic" };
  try {
    for (const change of applySysctls([target], systemFiles)) logSysctl(change, log);
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    log.error(error, "Packets and bytes of Services are not counted");
  }
}

/** Only the machine's initial network namespace can set the limit on connections. */
function warnAboutLimit(config: ValidConfig, log: Log): void {
  const limit = allConntrackTargets(config).find(({ file }) => file === conntrackMaxFile);
  const current = readSysctl(conntrackMaxFile);
  if (limit === undefined || !isReadOnly(conntrackMaxFile) || current === String(limit.value)) return;
  log.info(
    "Warning: cannot set the limit on tracked connections outside the first network namespace; keeping it",
    { current, wanted: limit.value, hint: "set --conntrack-max-per-core=0 and --conntrack-min=0" },
  );
}

function allConntrackTargets({ conntrack }: ValidConfig): readonly SysctlTarget[] {
  const cpus = countCpus(readSysctl("/sys/devices/system/cpu/online")) ?? availableParallelism();
  return conntrackTargets(conntrack, cpus);
}

export function logSysctl({ file, from, to, reason }: SysctlChange, log: Log): void {
  log.in("host/sysctl.ts").info("Set kernel setting", {
    file,
    from: from ?? "unknown",
    to,
    ...(reason === undefined ? {} : { reason }),
  });
}

/** Makes the kernel kill other processes first. The daemon also runs where this is not permitted. */
export async function raiseOomScore(score: number, log: Log): Promise<void> {
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  const refused = await setOomScore(score, systemFiles, pause);
  if (refused !== null) log.v(2, "Cannot set the OOM score", { reason: refused.message });
}
