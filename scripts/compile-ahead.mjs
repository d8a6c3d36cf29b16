// Has a program look at an example in several ways, and writes down what V8 compiled of it meanwhile, behind the mark that its source ends with.
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import Module, { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Script } from "node:vm";

const [, , program, mark] = process.argv;
const script = new Script(Module.wrap(readFileSync(program, "utf8")), { filename: program });
const folder = mkdtempSync(join(tmpdir(), "turnout-compile-"));
const exit = process.exit;
try {
  for (const argv of looks()) {
    process.argv = [process.argv0, program, ...argv];
    const code = await ended();
    // 3: diff found some.
    if (code !== 0 && code !== 3) throw new Error(`turnout ${argv.join(" ")} ended with ${code}`);
  }
} finally {
  process.exit = exit;
  rmSync(folder, { recursive: true, force: true });
}
const compiled = program.replace(/\.cjs$/, ".compiled");
writeFileSync(`${compiled}.new`, Buffer.concat([Buffer.from(`${mark}\n`), script.createCachedData()]));
renameSync(`${compiled}.new`, compiled);

function looks() {
  const shop = join(dirname(program), "..", "examples", "shop");
  const [list, other] = ["web", "api"].map((name) => {
    const path = join(folder, `${name}.json`);
    writeFileSync(path, JSON.stringify(listOf(name), null, 4));
    return path;
  });
  const node = "--node=node-a";
  return [
    ["--version"],
    ["explain", "outside", "nodeport:30080", `--source=files:${shop}`, node],
    ["render", `--source=files:${shop}`, node],
    ["render", "-o", "nftables", `--source=files:${list}`, node],
    ["diff", `--source=files:${list}`, `--against=files:${other}`, node],
  ];
}

/** As kubectl prints it: a Service with one endpoint. */
function listOf(name) {
  const metadata = { name, namespace: "shop", labels: { "kubernetes.io/service-name": name } };
  const clusterIP = "172.30.0.1";
  const items = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { type: "ClusterIP", clusterIP, clusterIPs: [clusterIP], ports: [{ port: 80, protocol: "TCP" }] },
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata,
      addressType: "IPv4",
      ports: [{ port: 8080, protocol: "TCP" }],
      endpoints: [{ addresses: ["10.0.0.1"], conditions: { ready: true }, nodeName: "node-a" }],
    },
  ];
  return { apiVersion: "v1", items, kind: "List" };
}

/** Resolves instead of ending the process. */
function ended() {
  return new Promise((resolve) => {
    process.exit = resolve;
    const module = { exports: {} };
    script.runInThisContext()(module.exports, createRequire(program), module, program, dirname(program));
  });
}
