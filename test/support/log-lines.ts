// A log whose lines a test can read.
import type { Clock } from "../../src/observe/clock.ts";
import { type Log, openLog } from "../../src/observe/log/log.ts";

export function logLines(clock: Clock): { readonly log: Log; readonly lines: () => readonly string[] } {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const settings = {
    format: "text",
    verbosity: 0,
    vmodule: [],
    splitStream: false,
    infoBufferSize: 0,
    flushFrequencyMs: 5000,
  } as const;
  const { log } = openLog(settings, { clock, pid: 1, stdout: write, stderr: write });
  return { log, lines: () => text.split("\n").filter((line) => line !== "") };
}
