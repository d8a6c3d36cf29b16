// Where log lines go: all to stderr, or info through a buffer to stdout and errors to stderr.
import type { Clock } from "../clock.ts";

/** Writes text immediately and in full. */
export type Write = (text: string) => void;

export type StreamSettings = {
  readonly splitStream: boolean;
  /** Characters of info lines kept before they are written; 0 writes each line immediately. */
  readonly infoBufferSize: number;
  readonly flushFrequencyMs: number;
};

export type Streams = {
  readonly info: Write;
  readonly error: Write;
  /** Writes what is buffered. */
  readonly flush: () => void;
};

export function openStreams(settings: StreamSettings, stdout: Write, stderr: Write, clock: Clock): Streams {
  if (!settings.splitStream) return { info: stderr, error: stderr, flush() {} };
  if (settings.infoBufferSize === 0) return { info: stdout, error: stderr, flush() {} };
  const buffer = openBuffer(settings, stdout, clock);
  return {
    info: buffer.write,
    error(line) {
      // What led to the error should not appear after it.
      buffer.flush();
      stderr(line);
    },
    flush: buffer.flush,
  };
}

function openBuffer(settings: StreamSettings, write: Write, clock: Clock) {
  let lines: string[] = [];
  let size = 0;
  let cancel: (() => void) | null = null;
  function flush(): void {
    cancel?.();
    cancel = null;
    if (size === 0) return;
    const text = lines.join("");
    lines = [];
    size = 0;
    write(text);
  }
  return {
    flush,
    write: (line: string): void => {
      if (size + line.length > settings.infoBufferSize) flush();
      lines.push(line);
      size += line.length;
      if (size > settings.infoBufferSize) flush();
      else cancel ??= clock.after(settings.flushFrequencyMs, flush);
    },
  };
}
