// The manifests that users apply: well-formed, equal in kustomize and Helm, and with no more rights than needed.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { completeConfig } from "../src/config/complete.ts";
import { defaultStatusSocket } from "../src/observe/status/status.ts";
import { parseKubeconfig } from "../src/sources/api/kubeconfig.ts";
import { findAssets } from "./assets.ts";
import { objectsIn, renderChart } from "./support/helm.ts";

const root = join(import.meta.dirname, "..");
const text = (name: string) => readFileSync(join(root, name), "utf8");
const chart = join(root, "deploy", "chart");
const { version } = JSON.parse(text("package.json")) as { version: string };

// biome-ignore lint/suspicious/noExplicitAny: manifests are trees of anything
type Tree = any;
const daemonSet = objectsIn(text("deploy/base/daemonset.yaml"))[0] as Tree;
const [container] = daemonSet.spec.template.spec.containers;
const kubectl = findAssets("kubectl");
/** As in the kubeconfig of the kustomize base. */
const apiServer = { apiServer: { host: "control-plane.example" } };

describe("the kustomize base", () => {
  it("security/12: runs the daemon with the least rights that nftables mode works with", () => {
    expect(container.securityContext).toEqual({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] },
      seccompProfile: { type: "RuntimeDefault" },
    });
  });

  it("security/12: the component for other modes adds NET_RAW where the capabilities are", () => {
    const [component] = objectsIn(text("deploy/other-modes/kustomization.yaml")) as Tree[];
    const [{ target, patch }] = component.patches;
    expect(target).toEqual({ kind: daemonSet.kind, name: daemonSet.metadata.name });
    const [{ op, path, value }] = objectsIn(patch)[0] as Tree;
    expect([op, value]).toEqual(["add", "NET_RAW"]);
    const steps = path.split("/").slice(1);
    expect(steps.pop()).toBe("-");
    expect(steps.reduce((tree: Tree, step: string) => tree[step], daemonSet)).toEqual(["NET_ADMIN"]);
  });

  it("security/12: limits memory, and has a writable directory for the status socket", () => {
    expect(container.resources.limits).toEqual({ memory: "1Gi" });
    const { name } = container.volumeMounts.find(
      ({ mountPath, readOnly }: Tree) => mountPath === dirname(defaultStatusSocket) && !readOnly,
    );
    const volume = daemonSet.spec.template.spec.volumes.find((each: Tree) => each.name === name);
    expect(volume.emptyDir).toEqual({ medium: "Memory", sizeLimit: "1Mi" });
  });

  it("probes the health endpoints", () => {
    expect(container.livenessProbe.httpGet.path).toBe("/livez");
    expect(container.startupProbe.httpGet.path).toBe("/livez");
    expect(container.readinessProbe.httpGet.path).toBe("/healthz");
  });

  it("names the version of this repository", () => {
    const images = [...daemonSet.spec.template.spec.initContainers, container].map(
      ({ image }: Tree) => image,
    );
    expect(images).toEqual([`turnout:${version}`, `turnout:${version}`]);
    const { appVersion, version: ofChart } = objectsIn(text("deploy/chart/Chart.yaml"))[0] as Tree;
    expect([appVersion, ofChart]).toEqual([version, version]);
  });

  it("mounts only volumes that it declares", () => {
    const { volumes, initContainers } = daemonSet.spec.template.spec;
    const names = volumes.map(({ name }: Tree) => name);
    for (const { volumeMounts } of [...initContainers, container])
      for (const { name } of volumeMounts) expect(names).toContain(name);
  });

  it("has a configuration that the daemon accepts without a remark, and a kubeconfig", () => {
    const completed = completeConfig({}, { name: "config.conf", text: text("deploy/base/config.conf") });
    expect(completed).toMatchObject({ ok: true, notices: [], config: { mode: "nftables" } });
    expect(() => parseKubeconfig(text("deploy/base/kubeconfig.conf"), "/etc/turnout")).not.toThrow();
  });
});

describe("the Helm chart", () => {
  it("renders what the kustomize base does", ({ skip }) => {
    if (!kubectl.found) return skip(kubectl.reason);
    const built = execFileSync(kubectl.paths.kubectl, ["kustomize", join(root, "deploy", "base")], {
      encoding: "utf8",
    });
    const rendered = byKind(renderChart(chart, "kube-system", apiServer));
    expect(withoutTexts(rendered)).toEqual(withoutTexts(byKind(objectsIn(built))));
  });

  it("security/12: has the rights, the limit and the volumes of the kustomize base", () => {
    const pod = byKind(renderChart(chart, "kube-system", apiServer)).DaemonSet.spec.template.spec;
    const { securityContext, resources, volumeMounts } = container;
    expect(pod.containers[0]).toMatchObject({ securityContext, resources, volumeMounts });
    expect(pod.volumes).toEqual(daemonSet.spec.template.spec.volumes);
    const other = byKind(renderChart(chart, "kube-system", { ...apiServer, netRaw: true })).DaemonSet.spec
      .template.spec;
    expect(other.containers[0].securityContext.capabilities.add).toEqual(["NET_ADMIN", "NET_RAW"]);
  });

  it.each([
    { emptyDir: { sizeLimit: "64Mi" } },
    { hostPath: { path: "/var/lib/turnout", type: "DirectoryOrCreate" } },
  ])("keeps the history in %j, and by default in memory only", (volume) => {
    const podWith = (values: object) =>
      byKind(renderChart(chart, "kube-system", { ...apiServer, ...values })).DaemonSet.spec.template.spec;
    const { containers, volumes } = podWith({ history: { volume } });
    const [flag] = containers[0].args.filter((arg: string) => arg.startsWith("--history-dir="));
    const mount = containers[0].volumeMounts.find(({ name }: { name: string }) => name === "history");
    expect(flag).toBe(`--history-dir=${mount.mountPath}`);
    expect(mount.readOnly).toBeUndefined();
    expect(volumes.at(-1)).toEqual({ name: "history", ...volume });
    expect(JSON.stringify(podWith({}))).not.toContain("history");
  });

  it("follows its values", () => {
    const objects = byKind(
      renderChart(chart, "net", {
        image: { tag: "9" },
        extraArgs: ["-v=4"],
        initContainer: { enabled: false },
        podAnnotations: { a: "b" },
        imagePullSecrets: [{ name: "secret" }],
        affinity: { nodeAffinity: {} },
        apiServer: { host: "10.0.0.1" },
        config: { mode: "iptables", nodePortAddresses: ["primary"] },
      }),
    );
    const { spec } = objects.DaemonSet.spec.template;
    expect(spec.initContainers).toBeUndefined();
    expect(spec.containers[0]).toMatchObject({ image: "turnout:9" });
    expect(spec.containers[0].args.at(-1)).toBe("-v=4");
    expect(objects.ConfigMap.metadata.namespace).toBe("net");
    expect(objects.ConfigMap.data["kubeconfig.conf"]).toContain("server: https://10.0.0.1:6443");
    const file = { name: "config.conf", text: objects.ConfigMap.data["config.conf"] };
    expect(completeConfig({}, file)).toMatchObject({ ok: true, config: { mode: "iptables" } });
  });
});

/** Objects by kind, comparable: layout of files in a ConfigMap does not count, nor does an explicit pull policy. */
function byKind(objects: readonly object[]): Record<string, Tree> {
  return Object.fromEntries(objects.map((object) => [(object as Tree).kind, comparable(object)]));
}

function comparable(object: object): Tree {
  const copy = structuredClone(object) as Tree;
  const { initContainers = [], containers = [] } = copy.spec?.template?.spec ?? {};
  for (const each of [...initContainers, ...containers]) delete each.imagePullPolicy;
  const files = Object.entries<string>(copy.data ?? {});
  copy.parsed = Object.fromEntries(files.map(([name, content]) => [name, objectsIn(content)[0]]));
  return copy;
}

function withoutTexts(objects: Record<string, Tree>): Record<string, Tree> {
  return { ...objects, ConfigMap: { ...objects.ConfigMap, data: null } };
}
