// Reads files of a host for remarks on it; the caller provides the access.

/** null: the file does not exist. */
export type ReadFile = (path: string) => string | null;

export function readSysctl(read: ReadFile, name: string): string | undefined {
  return read(`/proc/sys/${name}`)?.trim();
}
