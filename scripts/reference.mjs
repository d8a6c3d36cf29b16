// Shows what the real kube-proxy programs for a cluster; see test/reference/main.ts.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const outfile = join(root, "dist", "reference.cjs");
await build({
  absWorkingDir: root,
  entryPoints: ["test/reference/main.ts"],
  outfile,
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  external: ["koffi"],
  logLevel: "warning",
});
const { status } = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { ...process.env, TURNOUT_ROOT: root, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
});
process.exitCode = status ?? 1;
