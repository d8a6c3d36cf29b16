// Makes what a release consists of, in dist/: the programs, their bill of materials (CycloneDX) and checksums of all.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { billOfMaterials } from "./bill.mjs";
import { root } from "./bundle.mjs";

const dist = join(root, "dist");
const sbom = "turnout.cdx.json";
const sums = "SHA256SUMS";

execFileSync(process.execPath, [join(root, "scripts/build.mjs")], {
  stdio: ["ignore", "inherit", "inherit"],
});
writeFileSync(join(dist, sbom), `${JSON.stringify(billOfMaterials(), null, 2)}\n`);
const files = readdirSync(dist).filter((name) => name.endsWith(".cjs") || name === sbom);
writeFileSync(join(dist, sums), files.sort().map(checksum).join(""));
console.log(`released to dist/: ${[...files, sums].join(", ")}; check with: sha256sum --check ${sums}`);

/** A line of `sha256sum`. */
function checksum(name) {
  return `${createHash("sha256")
    .update(readFileSync(join(dist, name)))
    .digest("hex")}  ${name}\n`;
}
