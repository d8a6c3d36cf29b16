// Signals of the operating system as reasons of an AbortSignal, so that the log can name them.

/** An AbortError like any other, whose message is the name of the signal. */
export function signalReason(signal: NodeJS.Signals): DOMException {
  return new DOMException(signal, "AbortError");
}

/** null: the reason is not a signal. */
export function signalOf(reason: unknown): string | null {
  return reason instanceof DOMException && /^SIG[A-Z]+$/.test(reason.message) ? reason.message : null;
}
