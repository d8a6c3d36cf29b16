// The programs of the legacy back end under their usual names, and programs that find only those.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const tool = ["/usr/sbin/xtables-legacy-multi", "/sbin/xtables-legacy-multi"].find((file) =>
  existsSync(file),
);

/** null when there are any; else why not. */
export const reasonWithoutLegacy = tool === undefined ? "iptables-legacy is not installed" : null;

/** Where a program lies that is this one, on the legacy back end; `remove` takes it away. */
export function onLegacy(program: string): { readonly path: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "turnout-legacy-"));
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const name of ["iptables", "ip6tables"].flatMap((each) => [each, `${each}-save`, `${each}-restore`])) {
    if (tool !== undefined) symlinkSync(tool, join(bin, name));
  }
  const path = join(folder, "program");
  writeFileSync(path, `#!/bin/sh\nPATH=${bin}:$PATH exec ${program} "$@"\n`);
  chmodSync(path, 0o755);
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
