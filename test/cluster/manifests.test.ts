// Our manifests before a real API server: every object is accepted, and no field is unknown to it.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { createWorld } from "../kernel/world.ts";
import { objectsIn, renderChart } from "../support/helm.ts";
import { startControlPlane, writeKubeconfig } from "./control-plane.ts";

const assets = findAssets("etcd", "kube-apiserver", "kube-controller-manager", "kubectl");
const reason = reasonToSkip() ?? (assets.found ? null : assets.reason);
const chart = join(import.meta.dirname, "..", "..", "deploy", "chart");

const paths: Readonly<Record<string, string>> = {
  ServiceAccount: "/api/v1/namespaces/kube-system/serviceaccounts",
  ConfigMap: "/api/v1/namespaces/kube-system/configmaps",
  DaemonSet: "/apis/apps/v1/namespaces/kube-system/daemonsets",
  ClusterRole: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
};

it("all manifests are accepted in a strict dry run", async ({ skip }) => {
  if (reason !== null || !assets.found) return skip(reason ?? "");
  const world = await createWorld("m");
  const plane = await startControlPlane(world.node, assets.paths).catch(async (error: unknown) => {
    await world.close();
    throw error;
  });
  try {
    const host = { apiServer: { host: "10.0.0.1" } };
    const values = { podAnnotations: { a: "b" }, imagePullSecrets: [{ name: "x" }], extraArgs: ["-v=4"] };
    for (const object of [
      ...renderChart(chart, "kube-system", host),
      ...renderChart(chart, "kube-system", { ...host, ...values }),
      ...["base", "kind", "k3s"].flatMap((name) => kustomized(assets.paths.kubectl, name)),
    ]) {
      const path = `${paths[String(object.kind)]}?dryRun=All&fieldValidation=Strict`;
      const { code, body } = await plane.api("POST", path, object);
      expect({ code, message: body.message }).toEqual({ code: 201, message: undefined });
    }
  } finally {
    await plane.close();
    await world.close();
  }
});

it("the chart finds the address of the API server in a cluster made by kubeadm", async ({ skip }) => {
  const helm = findAssets("helm");
  if (reason !== null || !assets.found) return skip(reason ?? "");
  if (!helm.found) return skip(helm.reason);
  const world = await createWorld("h");
  const plane = await startControlPlane(world.node, assets.paths).catch(async (error: unknown) => {
    await world.close();
    throw error;
  });
  try {
    const { ca, admin } = plane.pki;
    const user = { "client-certificate": admin.cert, "client-key": admin.key };
    const kubeconfig = writeKubeconfig(join(plane.folder, "helm.kubeconfig"), ca, plane.url, user);
    const found = () => {
      const args = ["template", "turnout", chart, "--dry-run=server", `--kubeconfig=${kubeconfig}`];
      const rendered = world.node.run("sh", "-c", '"$@" 2>&1 || true', "sh", helm.paths.helm, ...args);
      return (
        /^ +server: (.*)$/m.exec(rendered)?.[1] ??
        /cannot find the address of the API server/.exec(rendered)?.[0]
      );
    };
    const put = (namespace: string, name: string, key: string, value: object) =>
      plane.api("POST", `/api/v1/namespaces/${namespace}/configmaps`, {
        metadata: { name },
        data: { [key]: JSON.stringify(value) },
      });
    expect(found()).toBe("cannot find the address of the API server");
    const clusters = [{ name: "", cluster: { server: "https://10.0.0.5:6443" } }];
    await put("kube-public", "cluster-info", "kubeconfig", { clusters });
    expect(found()).toBe("https://10.0.0.5:6443");
    await put("kube-system", "kubeadm-config", "ClusterConfiguration", {
      controlPlaneEndpoint: "api.example",
    });
    expect(found()).toBe("https://api.example:6443");
  } finally {
    await plane.close();
    await world.close();
  }
});

function kustomized(kubectl: string, name: string): Readonly<Record<string, unknown>>[] {
  const folder = join(import.meta.dirname, "..", "..", "deploy", name);
  return objectsIn(execFileSync(kubectl, ["kustomize", folder], { encoding: "utf8" }));
}
