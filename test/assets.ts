// Finds the real Kubernetes programs (see scripts/assets.mjs), or says why a test cannot have them.
import { accessSync, constants } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";

export type Program = "kube-proxy" | "kube-apiserver" | "kube-controller-manager" | "kubectl" | "etcd";

/** Paths of the wanted programs, or the reason why they are not there with the command that provides them. */
export type Assets<P extends Program> =
  | { readonly found: true; readonly paths: Readonly<Record<P, string>> }
  | { readonly found: false; readonly reason: string };

export function findAssets<P extends Program>(...wanted: readonly P[]): Assets<P> {
  const folders = assetFolders();
  const paths = wanted.map((name) => [name, find(name, folders)] as const);
  const missing = paths.filter(([, path]) => path === null).map(([name]) => name);
  if (missing.length === 0) return { found: true, paths: Object.fromEntries(paths) as Record<P, string> };
  const command = `npm run assets -- ${missing.join(" ")}`;
  return {
    found: false,
    reason: `no ${missing.join(", ")} in ${folders.cache}; provide with: ${command}`,
  };
}

function assetFolders(): { readonly cache: string; readonly path: readonly string[] } {
  const given = process.env.KUBEBUILDER_ASSETS;
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  return {
    cache: given || join(cache, "turnout", "assets"),
    path: given ? [] : (process.env.PATH ?? "").split(delimiter),
  };
}

/** Only etcd may be the machine's own: a kube-proxy or kubectl found there could be of any version. */
function find(name: Program, { cache, path }: ReturnType<typeof assetFolders>): string | null {
  const folders = name === "etcd" ? [cache, ...path] : [cache];
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
