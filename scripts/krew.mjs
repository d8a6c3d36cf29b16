// Writes the archive of the kubectl plugin and the krew manifest for it to dist/: node scripts/krew.mjs [URI [HOMEPAGE]]. Same input, same bytes.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const root = join(import.meta.dirname, "..");
const files = [
  ["bin", "kubectl-turnout"],
  ["bin", "kubectl_complete-turnout"],
  [".", "LICENSE"],
];
const from = files.flatMap(([folder, name]) => ["-C", join(root, folder), name]);
const plain = [
  "--format=ustar",
  "--mtime=@0",
  "--owner=0",
  "--group=0",
  "--numeric-owner",
  "--mode=u=rwX,go=rX",
];
const archive = gzipSync(execFileSync("tar", ["--create", ...plain, ...from], { maxBuffer: 1e7 }), {
  level: 9,
});
const sha256 = createHash("sha256").update(archive).digest("hex");
const [uri, homepage] = process.argv.slice(2);
const manifest = readFileSync(join(root, "deploy/krew/turnout.yaml"), "utf8")
  .replace(/^#.*\n/, "")
  .replace(/0{64}/, sha256)
  .replace(/uri: .*/, (line) => (uri === undefined ? line : `uri: ${uri}`))
  .replace(/homepage: .*/, (line) => (homepage === undefined ? line : `homepage: ${homepage}`));

mkdirSync(join(root, "dist"), { recursive: true });
writeFileSync(join(root, "dist/kubectl-turnout.tar.gz"), archive);
writeFileSync(join(root, "dist/turnout.yaml"), manifest);
console.log(`wrote dist/kubectl-turnout.tar.gz (sha256 ${sha256}) and dist/turnout.yaml`);
