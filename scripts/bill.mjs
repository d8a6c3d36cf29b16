// Lists what the programs consist of, as a bill of materials in the format CycloneDX.
import { execFileSync } from "node:child_process";
import { root } from "./bundle.mjs";

/**
 * Every package of the programs, from the lock file. Same lock file, same bytes: no time, serial number or folder.
 * Not `--omit=dev`: npm then also omits what the programs and the tools share.
 */
export function billOfMaterials() {
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
