// Makes what a release consists of, in dist/: the programs, their bill of materials (CycloneDX) and checksums of all.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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

/**
 * Every package of the programs, from the lock file. Same lock file, same bytes: no time, serial number or folder.
 * Not `--omit=dev`: npm then also omits what the programs and the tools share.
 */
function billOfMaterials() {
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const made = execFileSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const { serialNumber: _, metadata, components, dependencies, ...rest } = JSON.parse(made);
  const { timestamp: __, component, ...others } = metadata;
  const kept = components.filter((each) => !isForDevelopment(each));
  const refs = new Set([component["bom-ref"], ...kept.map((each) => each["bom-ref"])]);
  const edges = dependencies.filter(({ ref }) => refs.has(ref));
  return {
    ...rest,
    metadata: { ...others, component: { ...component, name: "turnout" } },
    components: kept.map(withoutRegistry),
    dependencies: edges.map(({ ref, dependsOn }) => ({
      ref,
      dependsOn: dependsOn.filter((each) => refs.has(each)),
    })),
  };
}

function isForDevelopment({ properties = [] }) {
  return properties.some(({ name }) => name === "cdx:npm:package:development");
}

function withoutRegistry({ externalReferences = [], ...component }) {
  return {
    ...component,
    externalReferences: externalReferences.filter(({ type }) => type !== "distribution"),
  };
}

/** A line of `sha256sum`. */
function checksum(name) {
  return `${createHash("sha256")
    .update(readFileSync(join(dist, name)))
    .digest("hex")}  ${name}\n`;
}
