// A part of the daemon: parts run concurrently, and the first one that returns an exit code ends the daemon.

export type Part = {
  /** Resolves with the exit code that ends the daemon; null: this part is done, the others continue. */
  readonly run: (signal: AbortSignal) => Promise<number | null>;
  readonly close?: () => Promise<void>;
};

/** Resolves with the first exit code, or 0 on abort, after closing the parts in reverse order: all of them, whichever fails. */
export async function runParts(
  parts: readonly Part[],
  signal: AbortSignal,
  onCloseFailure: (error: unknown) => void,
): Promise<number> {
  try {
    return await firstExitCode(parts, signal);
  } finally {
    for (const { close } of parts.toReversed()) await close?.().catch(onCloseFailure);
  }
}

function firstExitCode(parts: readonly Part[], signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve(0);
    signal.addEventListener("abort", () => resolve(0), { once: true });
    for (const { run } of parts) {
      run(signal).then((code) => {
        if (code !== null) resolve(code);
      }, reject);
    }
  });
}
