// deploy/NAME for each distribution, compared with how that distribution starts kube-proxy (deploy/facts.json).
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { completeConfig } from "../src/config/complete.ts";
import { readFlags } from "../src/config/flags/read.ts";
import { parseKubeconfig } from "../src/sources/api/kubeconfig.ts";
import { findAssets } from "./assets.ts";
import { objectsIn } from "./support/helm.ts";

const root = join(import.meta.dirname, "..");
const deploy = join(root, "deploy");
const text = (name: string) => readFileSync(join(deploy, name), "utf8");

// biome-ignore lint/suspicious/noExplicitAny: manifests are trees of anything
type Tree = any;
const facts = JSON.parse(text("facts.json")) as Record<string, Tree>;
const only = (name: string) => objectsIn(text(name))[0] as Tree;
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
const image = `my-registry/turnout:${version}`;
const kubectl = findAssets("kubectl");
const needsKubectl = kubectl.found ? "" : kubectl.reason;

/** What kubectl prints, without a cluster. */
function run(...args: readonly string[]): string {
  if (!kubectl.found) throw new Error(kubectl.reason);
  return execFileSync(kubectl.paths.kubectl, args, {
    encoding: "utf8",
    env: { ...process.env, KUBECONFIG: "/dev/null" },
  });
}

describe("every distribution", () => {
  const names = Object.keys(facts);
  /** For all other clusters. */
  const generic = ["base", "chart"];
  const withPage = [...names, ...generic];

  it.each(names)("%s has facts with their sources", (name) => {
    const { asOf, sources } = facts[name];
    expect(asOf).toMatch(/^2026-\d\d-\d\d$/);
    expect(sources.length).toBeGreaterThan(0);
    for (const source of sources) expect(source).toMatch(/^https:\/\//);
  });

  it.each(withPage)("%s has a page that fits on a screen", (name) => {
    expect(text(`${name}/README.md`).split("\n").length).toBeLessThanOrEqual(40);
  });

  it.each(withPage.filter((name) => name !== "managed"))("%s: apply, verify, back out", (name) => {
    const page = text(`${name}/README.md`);
    for (const part of ["**Apply.**", "**Verify.**", "**Back out.**"]) expect(page).toContain(part);
    expect(page).toMatch(/turnout status/);
    const files = readdirSync(join(deploy, name), { withFileTypes: true })
      .filter((each) => each.isFile() && each.name !== "README.md")
      .map((each) => text(`${name}/${each.name}`));
    for (const file of files) expect(file).not.toMatch(/turnout:(?!0\.1\.0)/);
  });

  it("are all there, and linked from the page on deployment", () => {
    const folders = readdirSync(deploy, { withFileTypes: true }).filter((each) => each.isDirectory());
    const found = folders
      .map(({ name }) => name)
      .filter((name) => existsSync(join(deploy, name, "README.md")));
    expect(found.sort()).toEqual(withPage.toSorted());
    const page = readFileSync(join(root, "docs", "deployment.md"), "utf8");
    for (const name of withPage) expect(page).toContain(`(../deploy/${name}/README.md)`);
  });
});

describe("kubeadm", () => {
  const fact = facts.kubeadm;
  const daemonSet = {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: fact.daemonSet, namespace: fact.namespace },
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: {
        metadata: { labels: { a: "b" } },
        spec: {
          containers: [
            {
              name: fact.container,
              image: "registry.k8s.io/kube-proxy:v1.37.1",
              command: fact.command,
              securityContext: { privileged: fact.privileged },
            },
          ],
        },
      },
    },
  };
  const withFile = (use: (file: string) => string): Tree => {
    const folder = mkdtempSync(join(tmpdir(), "turnout-kubeadm-"));
    try {
      writeFileSync(join(folder, "daemonset.json"), JSON.stringify(daemonSet));
      return JSON.parse(use(join(folder, "daemonset.json")));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const changed = (object: Tree) => {
    const [container, ...others] = object.spec.template.spec.containers;
    expect(others).toEqual([]);
    return container;
  };

  it("the patch has the name that kubeadm expects, and changes the image and the request alone", ({
    skip,
  }) => {
    skip(!kubectl.found, needsKubectl);
    const file = `kubeadm/${fact.patchTarget}+strategic.yaml`;
    const patched = withFile((path) =>
      run("patch", "--local", "--type=strategic", `--patch=${text(file)}`, `--filename=${path}`, "-o=json"),
    );
    const [before] = daemonSet.spec.template.spec.containers;
    const resources = { requests: { cpu: "50m", memory: "100Mi" } };
    expect(changed(patched)).toEqual({ ...before, image, resources });
    expect(patched.spec.template.spec.volumes).toBeUndefined();
  });

  it("the line on the page replaces the image of the right container", ({ skip }) => {
    skip(!kubectl.found, needsKubectl);
    const page = text("kubeadm/README.md");
    const line = /^kubectl -n (\S+) set image (\S+) (\S+)$/m.exec(page)!;
    expect(line.slice(1, 3)).toEqual([fact.namespace, `daemonset/${fact.daemonSet}`]);
    const swapped = withFile((path) =>
      run("set", "image", "--local", `--filename=${path}`, line[3]!, "-o=json"),
    );
    expect(changed(swapped)).toMatchObject({ image, command: fact.command });
    expect(page).toContain(`From kubeadm ${fact.patchTargetSince} on`);
  });

  it("starts it with flags that Turnout has", () => {
    expect(readFlags(fact.command.slice(1))).toMatchObject({ ok: true });
  });
});

describe("kind", () => {
  const fact = facts.kind;
  const server = `${fact.defaultClusterName}${fact.controlPlaneSuffix}:${fact.apiServerPort}`;

  it("creates a cluster without kube-proxy", () => {
    expect(only("kind/cluster.yaml")).toMatchObject({
      apiVersion: fact.apiVersion,
      networking: { kubeProxyMode: fact.kubeProxyMode },
    });
  });

  it("replaces both files of the base, with what kind sets for kube-proxy", ({ skip }) => {
    skip(!kubectl.found, needsKubectl);
    const objects = objectsIn(run("kustomize", join(deploy, "kind"))) as Tree[];
    const { data } = objects.find(({ kind }) => kind === "ConfigMap");
    expect(parseKubeconfig(data["kubeconfig.conf"], "/etc/turnout")).toMatchObject({
      cluster: { server: expect.stringContaining(server) },
    });
    expect(completed(data["config.conf"])).toMatchObject({
      mode: "nftables",
      conntrack: fact.conntrack,
    });
    expect(only("kind/config.conf").clusterCIDR).toBe(fact.podSubnet);
    const base = objectsIn(run("kustomize", join(deploy, "base")));
    expect(kindsOf(objects)).toEqual(kindsOf(base));
  });
});

describe("k3s", () => {
  const fact = facts.k3s;
  const rendered = () => objectsIn(run("kustomize", join(deploy, "k3s"))) as Tree[];
  const pod = () => rendered().find(({ kind }) => kind === "DaemonSet").spec.template.spec;

  it("uses the kubeconfig that k3s writes, and no account of its own", ({ skip }) => {
    skip(!kubectl.found, needsKubectl);
    expect(kindsOf(rendered())).toEqual(["ConfigMap", "DaemonSet"]);
    expect(pod()).toMatchObject({ automountServiceAccountToken: false });
    expect(pod().serviceAccountName).toBeUndefined();
    const { data } = rendered().find(({ kind }) => kind === "ConfigMap");
    expect(Object.keys(data)).toEqual(["config.conf"]);
    expect(completed(data["config.conf"])).toMatchObject({
      clientConnection: { kubeconfig: `${fact.agentFolder}/${fact.agentFiles[0]}` },
    });
    const { clusterCIDR, conntrack } = only("k3s/config.conf");
    expect({ clusterCIDR, conntrack }).toEqual({ clusterCIDR: fact.clusterCIDR, conntrack: fact.conntrack });
  });

  it("mounts kube-proxy's files where k3s has them, and no others of the agent", ({ skip }) => {
    skip(!kubectl.found, needsKubectl);
    const { volumes, containers, initContainers } = pod();
    const wanted = fact.agentFiles.map((name: string) => `${fact.agentFolder}/${name}`).sort();
    const ofAgent = (paths: readonly string[]) => paths.filter((path) => path.startsWith("/var/lib")).sort();
    expect(ofAgent(volumes.flatMap(({ hostPath }: Tree) => (hostPath ? [hostPath.path] : [])))).toEqual(
      wanted,
    );
    const init = initContainers.find(({ name }: Tree) => name === "init");
    for (const { volumeMounts } of [containers[0], init])
      expect(ofAgent(volumeMounts.map(({ mountPath }: Tree) => mountPath))).toEqual(wanted);
  });

  it("the first init container sets what k3s does not set without flannel", ({ skip }) => {
    skip(!kubectl.found, needsKubectl);
    const [bridge, init] = pod().initContainers;
    expect([bridge.name, init.name, bridge.securityContext.privileged]).toEqual(["bridge", "init", true]);
    const folder = mkdtempSync(join(tmpdir(), "turnout-k3s-"));
    try {
      const files = fact.unsetWithoutFlannel.map((name: string) => join(folder, name.split("/").at(-1)!));
      for (const file of files) writeFileSync(file, "0\n");
      const script = bridge.args[0].replaceAll("/proc/sys/net/bridge", folder).replace("modprobe", "true");
      const [shell, ...options] = bridge.command;
      expect(spawnSync(shell, [...options, script]).status).toBe(0);
      expect(files.map((file: string) => readFileSync(file, "utf8"))).toEqual(["1\n", "1\n"]);
      rmSync(files[1]);
      expect(spawnSync(shell, [...options, script]).status).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("the page names the flag's setting and the directory", () => {
    const page = text("k3s/README.md");
    expect(page).toContain(`\`${fact.flag}\``);
    expect(page).toContain(`${fact.flag.slice(2)}: true`);
    expect(page).toContain(`${fact.manifests}/turnout.yaml`);
  });
});

describe("RKE2", () => {
  const fact = facts.rke2;

  it("sets the image, and flags that Turnout has", () => {
    const settings = only("rke2/turnout.yaml");
    expect(new Set(Object.keys(settings))).toEqual(new Set([fact.argKey, fact.imageKey]));
    expect(settings[fact.imageKey]).toBe(image);
    expect(readFlags(settings[fact.argKey].map((each: string) => `--${each}`))).toMatchObject({ ok: true });
    const page = text("rke2/README.md");
    for (const each of [fact.configFolder, `\`${fact.command}\``, `${fact.healthPort}`, fact.memoryRequest])
      expect(page).toContain(each);
  });
});

describe("Talos", () => {
  const fact = facts.talos;

  it("sets fields that Talos has, and requests more memory than it does by default", () => {
    const document = only("talos/kube-proxy-config.yaml");
    expect(document).toMatchObject({ apiVersion: fact.apiVersion, kind: fact.kind, image });
    expect(Object.keys(document).filter((key) => !fact.documentFields.includes(key))).toEqual([]);
    const mebibytes = (quantity: string) => Number(/^(\d+)Mi$/.exec(quantity)![1]);
    expect(mebibytes(document.resources.requests.memory)).toBeGreaterThan(mebibytes(fact.memoryRequest));
    const { proxy } = only("talos/machine-config.yaml").cluster;
    expect(proxy.image).toBe(image);
    expect(Object.keys(proxy).filter((key) => !fact.olderFields.includes(key))).toEqual([]);
  });
});

describe("kops", () => {
  const fact = facts.kops;

  it("sets fields that kops has", () => {
    const { kubeProxy } = only("kops/cluster.yaml").spec;
    expect(kubeProxy.image).toBe(image);
    expect(Object.keys(kubeProxy).filter((key) => !fact.fields.includes(key))).toEqual([]);
  });

  it("starts programs that the image has, with flags that they have", () => {
    const files = readFileSync(join(root, "scripts", "image", "files.mjs"), "utf8");
    expect(fact.command).toEqual(["/go-runner"]);
    expect(files).toContain('file("go-runner", "deploy/image/go-runner", 0o755)');
    const program = fact.args.indexOf("/usr/local/bin/kube-proxy");
    const arguments_ = fact.args.slice(program + 1);
    expect(readFlags(arguments_)).toMatchObject({ ok: true });
    const folder = mkdtempSync(join(tmpdir(), "turnout-kops-"));
    try {
      const own = fact.args
        .slice(0, program)
        .map((each: string) => each.replace("/var/log/", `${folder}/`)) as string[];
      const argv = [...own, "printf", "%s\\n", ...arguments_];
      const started = spawnSync(join(deploy, "image", "go-runner"), argv, { encoding: "utf8" });
      expect(started).toMatchObject({ status: 0, stdout: `${arguments_.join("\n")}\n` });
      expect(readFileSync(join(folder, "kube-proxy.log"), "utf8")).toBe(started.stdout);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("EKS, AKS, GKE", () => {
  it("the page has what each can and cannot do", () => {
    const page = text("managed/README.md");
    for (const name of ["EKS", "AKS", "GKE"]) expect(page).toContain(`**${name}.**`);
    expect(page).toContain(`--addon-name ${facts.managed.eksAddOn} --preserve`);
    expect(page).toContain(facts.managed.aksFeature);
  });
});

function kindsOf(objects: readonly Tree[]): readonly string[] {
  const kinds: string[] = objects.map(({ kind }) => kind);
  return kinds.sort();
}

/** The configuration that the daemon makes of a file, without a remark. */
function completed(config: string): Tree {
  const result = completeConfig({}, { name: "config.conf", text: config });
  expect(result).toMatchObject({ ok: true, notices: [] });
  return (result as Tree).config;
}
