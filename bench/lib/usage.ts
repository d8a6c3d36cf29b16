// What a process and its children use, as the kernel counts it.
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** CPU time of a process and its children: of those at work to the nanosecond, of the ended ones to the tick. */
export function cpuSeconds(pid: number): number {
  for (;;) {
    try {
      return readCpuSeconds(pid);
    } catch (error) {
      // A child that ended meanwhile now counts among the ended ones: read all again.
      if (!existsSync(`/proc/${pid}`)) throw error;
    }
  }
}

function readCpuSeconds(pid: number): number {
  const own = readdirSync(`/proc/${pid}/task`)
    .map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]))
    .reduce((sum, nanoseconds) => sum + nanoseconds, 0);
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  const ended = (Number(fields[13]) + Number(fields[14])) / 100;
  return childrenOf(pid).reduce((sum, child) => sum + readCpuSeconds(child), own / 1e9 + ended);
}

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}

/** Memory of a process and of its children at work. */
export function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib ?? 0) / 1024 + childrenOf(pid).reduce((sum, child) => sum + residentMiB(child), 0);
}

/** The most that the process itself ever had resident. */
export function peakMiB(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
}
