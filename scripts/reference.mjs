// Shows what the real kube-proxy programs for a cluster; see test/reference/main.ts.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";
import { bundled, root } from "./bundle.mjs";

const outfile = join(root, "dist", "reference.cjs");
await build({ ...bundled, entryPoints: ["test/reference/main.ts"], outfile });
const { status } = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { ...process.env, TURNOUT_ROOT: root, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
});
process.exitCode = status ?? 1;
