// Reports on stderr which file is being read, when reading takes more than about a second.
import { basename } from "node:path";
import type { Clock } from "../model/clock.ts";
import { quoted } from "../model/problem.ts";
import type { Disk } from "../sources/files/disk.ts";

export type ProgressWorld = {
  readonly stderr: (text: string) => void;
  /** Whether stderr is a terminal, where one line is rewritten. */
  readonly isTerminal?: boolean;
};

export type ReportingDisk = Disk & {
  /** Removes the line from a terminal after the last file. */
  readonly done: () => void;
};

const quietMs = 1_000;
/** Files of this size take about a second to parse, and nothing is printed meanwhile. */
const slowBytes = { json: 40_000_000, yaml: 8_000_000 };

export function withProgress(
  disk: Disk,
  { stderr, isTerminal = false }: ProgressWorld,
  clock: Clock,
): ReportingDisk {
  let shownAt = clock.steady();
  let isShown = false;
  let [files, bytes] = [0, 0];

  function show(path: string, size: number): void {
    const before = files === 0 ? "" : `, after ${counted(files, "file")} of ${megabytes(bytes)}`;
    const text = `reading ${quoted(basename(path))} (${megabytes(size)})${before}`;
    stderr(isTerminal ? `\r\x1b[K${text}` : `${text}\n`);
    isShown = true;
    shownAt = clock.steady();
  }

  return {
    stat: (path) => disk.stat(path),
    async read(path) {
      const content = await disk.read(path);
      const isSlow = content.length >= (path.endsWith(".json") ? slowBytes.json : slowBytes.yaml);
      if (isSlow || clock.steady() - shownAt >= quietMs) show(path, content.length);
      files++;
      bytes += content.length;
      return content;
    },
    done() {
      if (isShown && isTerminal) stderr("\r\x1b[K");
      isShown = false;
    },
  };
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
