// CPU time that this process and the programs it started have used.
import { openSync, readSync } from "node:fs";

/** /proc counts in hundredths of a second, on every machine. */
const msPerTick = 10;

/** Returns a counter of milliseconds. Programs count when they have ended. */
export function openCpuMeter(): () => number {
  const stat = openStat();
  const buffer = Buffer.allocUnsafe(1024);
  return () => {
    const { user, system } = process.cpuUsage();
    const length = stat === null ? 0 : readSync(stat, buffer, 0, buffer.length, 0);
    return (user + system) / 1000 + childTicks(buffer.toString("latin1", 0, length)) * msPerTick;
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
