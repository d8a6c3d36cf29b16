// Makes what a release consists of, in dist/: the programs, their bill of materials (CycloneDX), checksums of all, and the
// notes from CHANGELOG.md. usage: release.mjs [--tag=vVERSION]   --tag: fails unless everything is ready for this release
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { billOfMaterials } from "./bill.mjs";
import { root } from "./bundle.mjs";
import { releaseNotes } from "./notes.mjs";

const dist = join(root, "dist");
const sbom = "turnout.cdx.json";
const sums = "SHA256SUMS";
const notes = "NOTES.md";
const { values } = parseArgs({ options: { tag: { type: "string" } } });
const text = (name) => readFileSync(join(root, name), "utf8");
const notesText = notesOrExit();

execFileSync(process.execPath, [join(root, "scripts/build.mjs")], {
  stdio: ["ignore", "inherit", "inherit"],
});
writeFileSync(join(dist, sbom), `${JSON.stringify(billOfMaterials(), null, 2)}\n`);
// As in the image: without the playground.
const files = ["kube-proxy.cjs", "turnout.cjs", "page.json", sbom];
writeFileSync(join(dist, sums), files.sort().map(checksum).join(""));
writeFileSync(join(dist, notes), notesText);
console.log(`wrote to dist/: ${[...files, sums, notes].join(", ")}; check with: sha256sum --check ${sums}`);

function notesOrExit() {
  try {
    return releaseNotes(text("CHANGELOG.md"), JSON.parse(text("package.json")).version, values.tag);
  } catch (error) {
    console.error(`release: ${error.message}`);
    return process.exit(1);
  }
}

/** A line of `sha256sum`. */
function checksum(name) {
  return `${createHash("sha256")
    .update(readFileSync(join(dist, name)))
    .digest("hex")}  ${name}\n`;
}
