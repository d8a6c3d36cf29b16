// Command line of the reference runner: shows what the real kube-proxy programs for a cluster, or records the corpus.
import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { findAssets } from "../assets.ts";
import { nodeName } from "../places.ts";
import { generateCase } from "./cases.ts";
import { corpusFile, corpusSeeds, type Recorded, writeCorpus } from "./corpus.ts";
import type { KubeObject } from "./objects.ts";
import type { Configuration, Mode } from "./proxy.ts";
import { recordRules } from "./record.ts";

const usage = `usage: node scripts/reference.mjs MODE CLUSTER…   show the rules that the real kube-proxy writes
       node scripts/reference.mjs record          record the corpus in test/golden/iptables again

MODE      iptables or nftables
CLUSTER   files of manifests (Services, EndpointSlices, a Node, ServiceCIDRs; a document of kind
          KubeProxyConfiguration sets the configuration), or seed:N for a generated cluster
          ("seed:N show" prints the generated objects instead)

The node is the first Node in the files, or ${nodeName}.`;

main(process.argv.slice(2)).catch((error: unknown) => fail(String(error)));

async function main([mode, ...clusters]: string[]): Promise<void> {
  const assets = findAssets("kube-proxy");
  if (!assets.found) return fail(assets.reason);
  if (process.getuid?.() !== 0) return fail("needs root, for network namespaces");
  const program = process.env.TURNOUT_PROGRAM ?? assets.paths["kube-proxy"];
  if (mode === "record") return record(program);
  if ((mode !== "iptables" && mode !== "nftables") || clusters.length === 0) return fail(usage);
  const { configuration, objects } = clusters[0]!.startsWith("seed:")
    ? generateCase(Number(clusters[0]!.slice(5)), mode)
    : readCluster(mode, clusters);
  if (clusters[1] === "show") return print(JSON.stringify({ configuration, objects }, null, 2));
  const name = objects.find(({ kind }) => kind === "Node")?.metadata.name ?? nodeName;
  for (const [command, text] of Object.entries(await recordRules(program, configuration, name, objects)))
    print(`# ${command}\n${text}`);
}

async function record(program: string): Promise<void> {
  const corpus: Recorded[] = [];
  for (const seed of corpusSeeds) {
    const { configuration, objects } = generateCase(seed, "iptables");
    const rules = await recordRules(program, configuration, nodeName, objects);
    corpus.push({ seed, configuration, objects, rules });
    process.stderr.write(`recorded ${corpus.length} of ${corpusSeeds.length}\n`);
  }
  writeCorpus(corpusFile, corpus);
}

function readCluster(
  mode: Mode,
  files: readonly string[],
): { configuration: Configuration; objects: KubeObject[] } {
  const documents = files
    .flatMap((file) =>
      parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS() as KubeObject),
    )
    .flatMap((object) => (object?.kind === "List" ? (object.items as KubeObject[]) : [object]))
    .filter((object) => object?.kind !== undefined);
  const given = documents.find(({ kind }) => kind === "KubeProxyConfiguration") as object | undefined;
  return {
    configuration: { ...given, mode },
    objects: documents.filter(({ kind }) => kind !== "KubeProxyConfiguration"),
  };
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function fail(text: string): void {
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
}
