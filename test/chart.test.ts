// The Helm chart as Helm itself renders it: lint, every value, the schema, and the API server's address.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { findAssets } from "./assets.ts";
import { objectsIn, renderChart } from "./support/helm.ts";

const chart = join(import.meta.dirname, "..", "deploy", "chart");
const assets = findAssets("helm");
const text = (name: string) => readFileSync(join(chart, name), "utf8");

type Values = Readonly<Record<string, unknown>>;
const host = { apiServer: { host: "10.0.0.1" } };

function helm(args: readonly string[], values: Values = {}) {
  if (!assets.found) throw new Error(assets.reason);
  const { stdout, stderr, status } = spawnSync(assets.paths.helm, [...args, "--values=-"], {
    encoding: "utf8",
    input: JSON.stringify(values),
    env: { ...process.env, KUBECONFIG: "/dev/null" },
  });
  return { stdout, stderr, status };
}

function template(values: Values) {
  return helm(["template", "turnout", chart, "--namespace=net"], values);
}

/** A value for each key, other than the default. */
const changed: Readonly<Record<string, unknown>> = {
  apiServer: { host: "api.example", port: 443 },
  image: { repository: "my-registry/turnout", tag: "9", pullPolicy: "Always" },
  imagePullSecrets: [{ name: "registry" }],
  config: { mode: "iptables", nodePortAddresses: ["primary"] },
  netRaw: true,
  configChanges: "restart",
  history: { volume: { emptyDir: { sizeLimit: "64Mi" } } },
  extraArgs: ["-v=4", "--nftables-ownership=owned"],
  initContainer: { enabled: false },
  serviceAccount: { name: "proxy" },
  podAnnotations: { "a.example/b": "c" },
  nodeSelector: { zone: "a" },
  tolerations: [],
  affinity: { nodeAffinity: {} },
  priorityClassName: "system-cluster-critical",
  updateStrategy: { type: "OnDelete" },
  resources: { limits: { memory: "2Gi" } },
};

describe("Helm", () => {
  beforeEach(({ skip }) => skip(!assets.found, assets.found ? "" : assets.reason));

  it("finds nothing to remark", () => {
    const { stdout, status } = helm(["lint", "--strict", chart], host);
    expect({ stdout, status }).toMatchObject({ status: 0 });
    expect(stdout).not.toMatch(/WARNING|ERROR/);
  });

  it.each(Object.keys(changed))("renders what the tests' own renderer does, with another %s", (key) => {
    const values = { ...host, [key]: changed[key] };
    const { stdout, stderr, status } = template(values);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(sorted(objectsIn(stdout))).toEqual(sorted(renderChart(chart, "net", values)));
    expect(stdout).not.toBe(template(host).stdout);
  });

  it.each([
    [{ apiServer: { host: "https://10.0.0.1" } }, "/apiServer/host"],
    [{ apiServer: { port: "6443" } }, "/apiServer/port"],
    [{ image: { pullPolicy: "Sometimes" } }, "/image/pullPolicy"],
    [{ config: { mode: "nft" } }, "/config/mode"],
    [{ config: { kind: "KubeProxyConfiguration" } }, "/config/kind"],
    [{ configChanges: "live" }, "/configChanges"],
    [{ extraArgs: ["v=4"] }, "/extraArgs/0"],
    [{ history: { volume: { nfs: {} } } }, "/history/volume"],
    [{ history: { volume: { hostPath: { path: "var/lib" } } } }, "/history/volume/hostPath/path"],
    [{ history: { volume: { emptyDir: {}, hostPath: { path: "/var/lib/turnout" } } } }, "/history/volume"],
    [{ netraw: true }, "additional properties 'netraw' not allowed"],
  ])("the schema rejects %j", (values, where) => {
    const { stderr, status } = template({ ...host, ...values });
    expect([status, stderr]).toEqual([1, expect.stringContaining(where)]);
  });

  it("without a cluster and an address, fails with the command that prints it", () => {
    const { stdout, stderr, status } = template({});
    expect([stdout, status]).toEqual(["", 1]);
    expect(stderr).toContain("cannot find the address of the API server");
    expect(stderr).toContain("kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}'");
    expect(stderr).toContain("--set apiServer.host=HOST --set apiServer.port=PORT");
  });
});

describe("the values", () => {
  it("are all in the schema, in the list of changed ones, and in the documentation", () => {
    const keys = Object.keys(parse(text("values.yaml")) as Values);
    const { properties } = JSON.parse(text("values.schema.json")) as { properties: Values };
    // `global` is Helm's own.
    expect(Object.keys(properties).sort()).toEqual([...keys, "global"].sort());
    expect(Object.keys(changed).sort()).toEqual([...keys].sort());
    const page = readFileSync(join(chart, "..", "..", "docs", "deployment.md"), "utf8");
    for (const key of keys) expect(page).toMatch(new RegExp(`\`${key}[.\`]`));
  });
});

function sorted(objects: readonly object[]): readonly object[] {
  const name = (object: object) => `${(object as { kind: string }).kind}`;
  return objects.map(parsed).sort((a, b) => (name(a) < name(b) ? -1 : 1));
}

/** The layout of the files in the ConfigMap does not count. */
function parsed(object: object): object {
  const { data, ...rest } = object as { data?: Record<string, string> };
  if (data === undefined) return rest;
  return { ...rest, data: Object.entries(data).map(([name, content]) => [name, objectsIn(content)]) };
}
