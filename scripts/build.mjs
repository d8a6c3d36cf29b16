// Bundles each program into one CommonJS file in dist/: less memory and a faster start than many modules.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { bundled, root } from "./bundle.mjs";
import { buildPage } from "./page.mjs";

const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

await build({
  ...bundled,
  entryPoints: {
    "kube-proxy": "src/cli/kube-proxy.ts",
    turnout: "src/cli/turnout.ts",
    // An image is built without it.
    ...(existsSync(join(root, "playground")) ? { playground: "playground/main.ts" } : {}),
  },
  outdir: "dist",
  outExtension: { ".js": ".cjs" },
  // Else the first import() would start Node's module loader: 20 ms.
  supported: { "dynamic-import": false },
  define: { TURNOUT_VERSION: JSON.stringify(version) },
});
await buildPage();
if (process.argv.includes("--announce")) {
  console.log(
    "built dist/kube-proxy.cjs and dist/turnout.cjs; start them with bin/kube-proxy and bin/turnout",
  );
}
