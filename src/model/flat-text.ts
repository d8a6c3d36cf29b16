// Text that many objects keep, such as keys: made in one piece.

/**
 * A template makes a tree of pieces of text of 13 and more characters, and its first use as a key adds a flat copy:
 * more memory and time than this takes.
 */
export function flatText(separator: string, ...parts: readonly (string | number)[]): string {
  return parts.join(separator);
}
