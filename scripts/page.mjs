// Bundles the page for browsers, and writes all its static files, compressed, to one file beside the programs.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { root } from "./bundle.mjs";

/** Writes dist/page.json. */
export async function buildPage(outdir = join(root, "dist")) {
  const files = await pageFiles();
  writeFileSync(join(outdir, "page.json"), `${JSON.stringify(files)}\n`);
}

async function pageFiles() {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: { app: "page/main.tsx", style: "page/all.css" },
    outdir: "dist",
    bundle: true,
    write: false,
    minify: true,
    format: "esm",
    target: ["chrome120", "firefox121", "safari17"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    logLevel: "warning",
  });
  const text = (extension) => outputFiles.find(({ path }) => path.endsWith(extension)).text;
  const source = (name) => readFileSync(join(root, "page", name), "utf8");
  return {
    "/": file("text/html; charset=utf-8", source("index.html")),
    "/app.js": file("text/javascript; charset=utf-8", text("app.js")),
    "/app.css": file("text/css; charset=utf-8", text("style.css")),
    "/icon.svg": file("image/svg+xml", source("icon.svg")),
  };
}

/** The same bytes for the same text, on every machine. */
function file(type, text) {
  const gzip = gzipSync(text, { level: 9 });
  gzip[9] = 255;
  const etag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 20)}"`;
  return { type, gzip: gzip.toString("base64"), etag };
}
