// Errors in what the user passed, and the texts they share.

/** The message names the cause and what to do. */
export class UsageError extends Error {}

/** `a, b or c`. */
export function alternatives(values: readonly string[]): string {
  return `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

/** The first ten, and how many more there are. */
export function few(names: readonly string[]): string {
  const most = 10;
  const shown = names.slice(0, most).join(", ");
  return names.length > most ? `${shown} and ${names.length - most} more` : shown;
}

/** Why a file cannot be read. */
export function whyUnreadable(path: string, error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === "ENOENT" ? "no such file" : code === "EISDIR" ? "it is a directory" : message;
  return `cannot read ${path}: ${why}`;
}
