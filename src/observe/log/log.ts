// The log: klog's levels, vmodule and contextual keys over a text or JSON line writer.
import type { Clock } from "../clock.ts";
import { type Entry, type Fields, formats } from "./format.ts";
import { safeJson } from "./quote.ts";
import { openStreams, type StreamSettings, type Write } from "./streams.ts";

export type LogSettings = StreamSettings & {
  readonly format: keyof typeof formats;
  readonly verbosity: number;
  /** Raises the verbosity of files whose name without ending matches; the first match counts. */
  readonly vmodule: readonly { readonly filePattern: string; readonly verbosity: number }[];
};

export type Log = {
  /** Always shown. */
  info(message: string, fields?: Fields): void;
  /** Shown from this verbosity on. */
  v(level: number, message: string, fields?: Fields): void;
  error(error: unknown, message: string, fields?: Fields): void;
  /** Whether entries of this verbosity are shown; check it before computing costly fields. */
  enabled(level: number): boolean;
  /** The same log for another source file, which vmodule matches: `observe/health.ts`. */
  in(file: string): Log;
  /** The same log with keys on every entry. */
  with(fields: Fields): Log;
  /** The same log with a further part of its dotted name. */
  named(name: string): Log;
};

export type LogWorld = {
  readonly clock: Clock;
  readonly stdout: Write;
  readonly stderr: Write;
  readonly pid: number;
};

export type OpenLog = {
  readonly log: Log;
  /** Takes effect immediately everywhere; `/debug/flags/v` calls it. */
  readonly setVerbosity: (verbosity: number) => void;
  readonly flush: () => void;
};

export function openLog(settings: LogSettings, world: LogWorld): OpenLog {
  const streams = openStreams(settings, world.stdout, world.stderr, world.clock);
  const line = formats[settings.format];
  const filters = settings.vmodule.map((one) => ({ matches: fileMatcher(one.filePattern), ...one }));
  let verbosity = settings.verbosity;

  function logger(file: string, name: string, own: readonly Fields[]): Log {
    const stem = file.slice(file.lastIndexOf("/") + 1).replace(/\.[^.]*$/, "");
    const fileVerbosity = filters.find((filter) => filter.matches(stem))?.verbosity ?? 0;
    const enabled = (level: number) => level <= verbosity || level <= fileVerbosity;
    function entry(
      severity: Entry["severity"],
      level: number,
      message: string,
      error: Error | null,
      fields: Fields,
    ) {
      const at = world.clock.wall();
      const all = [...own, fields];
      streams[severity](
        line({ severity, level, at, file, logger: name, message, error, fields: all }, world.pid),
      );
    }
    return {
      enabled,
      info: (message, fields = {}) => entry("info", 0, message, null, fields),
      v: (level, message, fields = {}) => {
        if (enabled(level)) entry("info", level, message, null, fields);
      },
      error: (error, message, fields = {}) => entry("error", 0, message, asError(error), fields),
      in: (other) => logger(other, name, own),
      with: (fields) => logger(file, name, [...own, fields]),
      named: (part) => logger(file, name === "" ? part : `${name}.${part}`, own),
    };
  }

  return {
    log: logger("???", "", []),
    setVerbosity(next) {
      verbosity = next;
    },
    flush: streams.flush,
  };
}

/** A log that writes nothing. */
export const silentLog: Log = {
  info() {},
  v() {},
  error() {},
  enabled: () => false,
  in: () => silentLog,
  with: () => silentLog,
  named: () => silentLog,
};

function asError(thrown: unknown): Error | null {
  if (thrown === null || thrown === undefined) return null;
  return thrown instanceof Error ? thrown : new Error(safeJson(thrown));
}

/** Go's path.Match for one name: `*`, `?`, `[a-z]`, `[^a]`, `\x`. A pattern that makes no sense matches nothing. */
function fileMatcher(pattern: string): (name: string) => boolean {
  const source = pattern.replace(
    /\\(.)|\[(\^?)((?:\\.|[^\]\\])+)\]|[*?]|[.+^${}()|[\]\\]/g,
    (part, escaped, not, set) => {
      if (escaped !== undefined) return escaped.replace(/[^\p{L}\p{N}]/u, "\\$&");
      if (set !== undefined) return `[${not}${set.replace(/[[^]/g, "\\$&")}]`;
      return part === "*" ? ".*" : part === "?" ? "." : `\\${part}`;
    },
  );
  try {
    const expression = new RegExp(`^${source}$`, "su");
    return (name) => expression.test(name);
  } catch {
    return () => false;
  }
}
