// Errors in files: commands report file and line, and exit with 1 where the output would be incomplete.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { diff } from "../src/cli/commands/diff.ts";
import { doctor } from "../src/cli/commands/doctor.ts";
import { explain } from "../src/cli/commands/explain.ts";
import { render } from "../src/cli/commands/render.ts";
import { outputOf } from "./support/command-output.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "turnout-warnings-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const shop = `files:${join(import.meta.dirname, "..", "examples/shop")}`;
const put = (name: string, text: string) => writeFileSync(join(folder, name), text);
const source = () => [`--source=files:${folder}`, "--node=node-a"];
const node =
  "kind: Node\napiVersion: v1\nmetadata: {name: node-a}\nstatus: {addresses: [{type: InternalIP, address: 192.168.0.2}]}\n";
const web =
  "kind: Service\napiVersion: v1\nmetadata: {name: web, namespace: shop}\nspec:\n  clusterIP: 172.30.0.1\n  ports: [{port: 80}]\n";

describe("user/4: render", () => {
  it.each([
    ["a.yaml", "kind: Service\n  name: [\n", "a.yaml:2: cannot be read: "],
    ["a.json", '{"kind": "Service",\n "name": ]', "a.json:2: cannot be read: "],
  ])("exits with 1 when %s cannot be read, and prints no partial rules", async (name, text, place) => {
    put("good.yaml", `${node}---\n${web}`);
    put(name, text);
    const { code, out, err } = await outputOf(render, ...source(), "-o", "nftables");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^turnout render: cannot render: .*\n$/);
    expect(err).toContain(join(folder, place));
  });

  const none = () =>
    `! no Services found in files:${folder} (headless and ExternalName Services do not count)\n`;

  it.each([
    ["an empty folder", ""],
    ["a folder with other kinds only", "kind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n"],
  ])("of %s reports that there are no Services", async (_, text) => {
    if (text !== "") put("a.yaml", text);
    put("node.yaml", node);
    expect(await outputOf(render, ...source())).toMatchObject({ code: 0, err: none() });
  });

  it("warns about unknown kinds by name and line", async () => {
    const custom =
      "kind: Servce\napiVersion: example.com/v1\n---\nkind: Gateway\napiVersion: gateway.networking.k8s.io/v1\n";
    put(
      "a.yaml",
      `${node}---\n# comment\nkind: Servce\napiVersion: v1\n---\n${custom}---\nkind: Service\napiVersion: apps/v1\n`,
    );
    const { code, err } = await outputOf(render, ...source());
    expect(code).toBe(0);
    expect(err.split("\n").slice(1)).toEqual([
      `! ${folder}/a.yaml:7: is of unknown kind "Servce" and is ignored; did you mean Service?`,
      `! ${folder}/a.yaml:16: is of "apps/v1", which has no Service, and is ignored; did you mean v1?`,
      "",
    ]);
  });

  it("warns about unknown fields and values by name and line", async () => {
    const spec = "  type: Clusterip\n  sessionAfinity: ClientIP\n  sessionAffinity: clientIP\n";
    put("a.yaml", `${node}---\n${web}${spec}  externalTrafficPolicy: Near\nstatuss: {}\n`);
    const { err } = await outputOf(render, ...source());
    expect(err.split("\n")).toEqual([
      `! ${folder}/a.yaml:12: unknown value "Clusterip" of spec.type in Service shop/web; did you mean ClusterIP?`,
      `! ${folder}/a.yaml:13: unknown field "spec.sessionAfinity" in Service shop/web is ignored; did you mean sessionAffinity?`,
      `! ${folder}/a.yaml:14: unknown value "clientIP" of spec.sessionAffinity in Service shop/web; did you mean ClientIP?`,
      `! ${folder}/a.yaml:15: unknown value "Near" of spec.externalTrafficPolicy in Service shop/web; must be Cluster, Local`,
      `! ${folder}/a.yaml:16: unknown field "statuss" in Service shop/web is ignored; did you mean status?`,
      "",
    ]);
  });

  it("names the line in JSON too, and reports an error of many objects once", async () => {
    const item = (name: string, i: number) => ({
      kind: "Service",
      apiVersion: "v1",
      metadata: { name, namespace: "shop" },
      spec: { clusterIP: `172.30.0.${i}`, ports: [{ port: 80 }, { port: 81, name: "b", nodeport: 30080 }] },
    });
    put(
      "a.json",
      JSON.stringify({ kind: "List", items: [item("a", 1), item("b", 2), item("c", 3)] }, null, 1),
    );
    put("node.yaml", node);
    const { err } = await outputOf(render, ...source());
    const lines = err.split("\n").filter((line) => line.includes("unknown"));
    expect(lines).toEqual([
      `! ${folder}/a.json:20: unknown field "spec.ports[1].nodeport" in Service shop/a is ignored; did you mean nodePort? (and 2 more)`,
    ]);
  });

  it("prints no warning about a file without errors", async () => {
    put("a.yaml", `${node}---\n${web}`);
    expect(await outputOf(render, ...source())).toMatchObject({ code: 0, err: "" });
    expect((await outputOf(render, `--source=${shop}`, "--node=node-a")).err).not.toContain("unknown");
  });
});

it("user/4: explain and diff warn about errors in files", async () => {
  put("a.yaml", `${node}---\n${web}  typ: NodePort\n`);
  const warning = `! ${folder}/a.yaml:12: unknown field "spec.typ" in Service shop/web is ignored; did you mean type?\n`;
  expect((await outputOf(explain, "node", "svc/shop/web", ...source())).err).toBe(warning);
  expect((await outputOf(diff, ...source(), `--against=files:${folder}`)).err).toBe(warning.repeat(2));
});

it("user/4: doctor refuses files that it cannot read, and reports a source without Services", async () => {
  put("node.yaml", node);
  const argv = ["migrate", "--from=ipvs", ...source()];
  expect((await outputOf(doctor, ...argv)).err).toContain("! no Services found in");
  put("a.yaml", "a: [");
  const { code, out, err } = await outputOf(doctor, ...argv);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain(`cannot compare the modes: ${folder}/a.yaml:1: cannot be read`);
});

it("user/4: diff against an empty folder reports it first", async () => {
  const empty = join(folder, "empty");
  mkdirSync(empty);
  const { code, err } = await outputOf(diff, `--source=${shop}`, "--node=node-a", `--against=files:${empty}`);
  expect(code).toBe(3);
  expect(err.split("\n")[0]).toBe(
    `! no Services found in files:${empty} (headless and ExternalName Services do not count)`,
  );
});
