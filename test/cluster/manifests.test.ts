// Our manifests before a real API server: every object is accepted, and no field is unknown to it.
import { join } from "node:path";
import { expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { createWorld } from "../kernel/world.ts";
import { renderChart } from "../support/helm.ts";
import { startControlPlane } from "./control-plane.ts";

const assets = findAssets("etcd", "kube-apiserver", "kube-controller-manager");
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
    const values = { podAnnotations: { a: "b" }, imagePullSecrets: [{ name: "x" }], extraArgs: ["-v=4"] };
    for (const object of [
      ...renderChart(chart, "kube-system"),
      ...renderChart(chart, "kube-system", values),
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
