// Bundles each program into one CommonJS file in dist/: less memory and a faster start than many modules.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const root = join(import.meta.dirname ?? new URL(".", import.meta.url).pathname, "..");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

await build({
  absWorkingDir: root,
  entryPoints: { "kube-proxy": "src/cli/kube-proxy.ts", turnout: "src/cli/turnout.ts" },
  outdir: "dist",
  outExtension: { ".js": ".cjs" },
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  minifySyntax: true,
  sourcemap: "linked",
  sourcesContent: false,
  external: ["koffi"],
  // Else the first import() would start Node's module loader: 20 ms.
  supported: { "dynamic-import": false },
  define: { TURNOUT_VERSION: JSON.stringify(version) },
  logLevel: "warning",
});
if (process.argv.includes("--announce") && existsSync(join(root, "dist/turnout.cjs"))) {
  console.log(
    "built dist/kube-proxy.cjs and dist/turnout.cjs; start them with bin/kube-proxy and bin/turnout",
  );
}
