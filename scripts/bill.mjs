// Lists what the programs consist of, as a bill of materials in the format CycloneDX.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./bundle.mjs";

/**
 * Every package of the programs, from the lock file. Same lock file, same bytes: no time, serial number or folder.
 * Not `--omit=dev`: npm then also omits what the programs and the tools share. With a platform (`{ os, cpu }`, in the terms of
 * Node.js) packages for others are left out.
 */
export function billOfMaterials(platform) {
  const args = ["sbom", "--sbom-format=cyclonedx", "--sbom-type=application", "--package-lock-only"];
  const made = execFileSync("npm", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const { serialNumber: _, metadata, components, dependencies, ...rest } = JSON.parse(made);
  const { timestamp: __, component, ...others } = metadata;
  const isForPlatform = platform === undefined ? () => true : platformFilter(platform);
  const kept = components.filter((each) => !isForDevelopment(each) && isForPlatform(each));
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

/** The lock file has the platforms of each package; a package without any runs everywhere. */
function platformFilter({ os, cpu }) {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  return ({ group, name }) => {
    const locked = packages[`node_modules/${group === undefined ? name : `${group}/${name}`}`];
    return (locked?.os ?? [os]).includes(os) && (locked?.cpu ?? [cpu]).includes(cpu);
  };
}

function withoutRegistry({ externalReferences = [], ...component }) {
  return {
    ...component,
    externalReferences: externalReferences.filter(({ type }) => type !== "distribution"),
  };
}
