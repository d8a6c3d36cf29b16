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
for (const program of ["kube-proxy", "turnout"]) requireLatin1(join(root, "dist", `${program}.cjs`));
await buildPage();
if (process.argv.includes("--announce")) {
  console.log(
    "built dist/kube-proxy.cjs and dist/turnout.cjs; start them with bin/kube-proxy and bin/turnout",
  );
}

/** One character beyond Latin-1, in a comment that esbuild keeps, and V8 holds the whole program at two bytes each: 1.5 MB. */
function requireLatin1(file) {
  const lines = readFileSync(file, "utf8").split("\n");
  const line = lines.findIndex((text) => /[^\0-\xff]/.test(text));
  if (line >= 0) throw new Error(`${file}:${line + 1}: a character beyond Latin-1: ${lines[line].trim()}`);
}
