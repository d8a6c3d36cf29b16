// A log whose lines a test can read.
import type { Clock } from "../../src/observe/clock.ts";
import { type Log, type LogSettings, openLog } from "../../src/observe/log/log.ts";

export const plainLog: LogSettings = {
  format: "text",
  verbosity: 0,
  vmodule: [],
  splitStream: false,
  infoBufferSize: 0,
  flushFrequencyMs: 5000,
};

export function logLines(
  clock: Clock,
  settings: Partial<LogSettings> = {},
): { readonly log: Log; readonly lines: () => readonly string[] } {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const { log } = openLog({ ...plainLog, ...settings }, { clock, pid: 1, stdout: write, stderr: write });
  return { log, lines: () => text.split("\n").filter((line) => line !== "") };
}
