// Bundles each program into one CommonJS file in dist/: less memory and a faster start than many modules.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { bundled, root } from "./bundle.mjs";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const tool = join(root, "dist/turnout.cjs");

rmSync(join(root, "dist/turnout.compiled"), { force: true });
await build({
  ...bundled,
  entryPoints: {
    "kube-proxy": "src/cli/kube-proxy.ts",
    turnout: "src/cli/turnout.ts",
    "quick-start": "src/cli/quick-start.ts",
  },
  outdir: "dist",
  outExtension: { ".js": ".cjs" },
  // Else the first import() would start Node's module loader: 20 ms.
  supported: { "dynamic-import": false },
  define: { TURNOUT_VERSION: JSON.stringify(version) },
});
compileAhead();
if (process.argv.includes("--announce") && existsSync(tool)) {
  console.log(
    "built dist/kube-proxy.cjs and dist/turnout.cjs; start them with bin/kube-proxy and bin/turnout",
  );
}

/** Keeps what V8 makes of the tool beside it; src/cli/quick-start.ts takes it when it is of this very source. */
function compileAhead() {
  const hash = createHash("sha256").update(readFileSync(tool)).digest("hex");
  appendFileSync(tool, `// ${hash}\n`);
  const { NODE_OPTIONS: _, ...env } = process.env;
  const script = join(root, "scripts/compile-ahead.mjs");
  const { status, stderr } = spawnSync(process.execPath, [script, tool, hash], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  // Without it everything works, and takes a little longer to start.
  if (status !== 0) console.error(`${stderr}could not compile dist/turnout.cjs ahead of time`);
}
