// Shows what the real kube-proxy programs for a cluster; see test/reference/main.ts.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const scratch = mkdtempSync(join(tmpdir(), "turnout-reference-"));
const outfile = join(scratch, "main.mjs");
try {
  await build({
    absWorkingDir: root,
    entryPoints: ["test/reference/main.ts"],
    outfile,
    bundle: true,
    platform: "node",
    target: "node20",
    format: "esm",
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire("/");' },
    logLevel: "warning",
  });
  const { status } = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], {
    stdio: "inherit",
    env: { ...process.env, TURNOUT_ROOT: root, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
