// Finds the real Kubernetes programs (see scripts/assets.mjs), or returns the reason why a test cannot use them.
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

export type Program =
  | "kube-proxy"
  | "kube-apiserver"
  | "kube-controller-manager"
  | "kubectl"
  | "etcd"
  | "helm"
  | "actionlint"
  | NodeProgram;

/** For `npm run test:node`. */
type NodeProgram =
  | "kubelet"
  | "kube-scheduler"
  | "coredns"
  | "e2e.test"
  | "ginkgo"
  | "agnhost"
  | "regression-issue-74839";

/** Paths of the wanted programs, or the reason why they are not there with the command that provides them. */
export type Assets<P extends Program> =
  | { readonly found: true; readonly paths: Readonly<Record<P, string>> }
  | { readonly found: false; readonly reason: string };

export function findAssets<P extends Program>(...wanted: readonly P[]): Assets<P> {
  const folder = assetFolder();
  const missing = wanted.filter((name) => !isExecutable(join(folder, name)));
  if (missing.length > 0) {
    const command = `npm run assets -- ${missing.join(" ")}`;
    return { found: false, reason: `no ${missing.join(", ")} in ${folder}; provide with: ${command}` };
  }
  const paths = wanted.map((name) => [name, join(folder, name)]);
  return { found: true, paths: Object.fromEntries(paths) as Record<P, string> };
}

function assetFolder(): string {
  const { KUBEBUILDER_ASSETS: given, XDG_CACHE_HOME: cache } = process.env;
  return given || join(cache || join(homedir(), ".cache"), "turnout", "assets");
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
