// What the user passed cannot be used: the text says what to pass instead.

/** The text says what to do. */
export class UsageError extends Error {}

/** `a, b or c`. */
export function alternatives(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** The first of many. */
export function few(names: readonly string[]): string {
  const most = 10;
  const shown = names.slice(0, most).join(", ");
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** Why a file the user named cannot be read. */
export function whyUnreadable(path: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === "ENOENT" ? "there is no such file" : code === "EISDIR" ? "it is a directory" : message;
  return `cannot read ${path}: ${why}`;
}
