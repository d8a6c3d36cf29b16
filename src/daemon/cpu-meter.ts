// CPU time that this process and the programs it started have used.
import { openSync, readSync } from "node:fs";
import { programsEnded } from "../host/iptables/command.ts";

/** /proc counts in hundredths of a second, on every machine. */
const msPerTick = 10;

/**
 * Returns a counter of milliseconds. Programs count when they have ended; if none has since the last reading, /proc is not read, which
 * would take ten times as long as the rest.
 */
export function openCpuMeter(ended: () => number = programsEnded): () => number {
  const stat = openStat();
  const buffer = Buffer.allocUnsafe(1024);
  let counted = -1;
  let ofPrograms = 0;
  return () => {
    if (stat !== null && counted !== ended()) {
      counted = ended();
      const length = readSync(stat, buffer, 0, buffer.length, 0);
      ofPrograms = childTicks(buffer.toString("latin1", 0, length)) * msPerTick;
    }
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000 + ofPrograms;
  };
}

/** null without /proc: then programs do not count. */
function openStat(): number | null {
  try {
    return openSync("/proc/self/stat", "r");
  } catch {
    return null;
  }
}

/** `cutime` and `cstime`, fields 16 and 17; the name before them may contain blanks. */
function childTicks(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[13] ?? 0) + Number(fields[14] ?? 0);
}
