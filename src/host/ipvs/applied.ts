// What became of a list of Operations, whichever way they went.

/** An Operation and its place in the list. */
export type Numbered<T> = { readonly at: number; readonly operation: T };

/** An Operation that was refused, by its place in the list, and why. */
export type Failure = { readonly operation: number; readonly errno: string; readonly reason: string };

/** What a list of Operations came to; those that did not fail were carried out. */
export type Applied = {
  /** Messages to the kernel and lines to `ipset`. */
  readonly messages: number;
  readonly bytes: number;
  readonly failures: readonly Failure[];
};

export const nothingApplied: Applied = { messages: 0, bytes: 0, failures: [] };

export function sumApplied(first: Applied, second: Applied): Applied {
  return {
    messages: first.messages + second.messages,
    bytes: first.bytes + second.bytes,
    failures: [...first.failures, ...second.failures],
  };
}
