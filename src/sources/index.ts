// Opens the Source a user names: the Kubernetes API, or manifests in files.
import { setMaxListeners } from "node:events";
import { apiClient } from "./api/client.ts";
import { type ConnectionOptions, resolveConnection } from "./api/connection.ts";
import { acceptHeader, type ContentTypes } from "./api/encoding/accept.ts";
import { apiSource } from "./api/source.ts";
import { type Limit, throttle } from "./api/throttle.ts";
import { filesSource } from "./files/source.ts";
import { type Source, SourceError } from "./source.ts";
import type { World } from "./world.ts";

export type SourceSpec =
  | {
      readonly kind: "api";
      readonly connection: ConnectionOptions;
      readonly limit: Limit;
      readonly userAgent: string;
      /** The settings of `clientConnection`; absent: its defaults. */
      readonly contentTypes?: ContentTypes;
    }
  | FilesSpec;

export type FilesSpec = { readonly kind: "files"; readonly paths: readonly string[] };

/** Works until `life` aborts. Rejects with SourceError when it is misconfigured, not when it is down. */
export async function openSource(
  spec: SourceSpec,
  nodeName: string,
  world: World,
  life: AbortSignal,
): Promise<Source> {
  setMaxListeners(0, life);
  try {
    switch (spec.kind) {
      case "files":
        return await filesSource({ ...world, paths: spec.paths, nodeName }, life);
      case "api":
        return apiSource({ client: await openApi(spec, world), nodeName, world }, life);
    }
  } catch (error) {
    throw new SourceError(error instanceof Error ? error.message : String(error), { cause: error });
  }
}

/** A client for other uses of the same API, such as events; the rate limit is shared only within it. */
export async function openApi(spec: Extract<SourceSpec, { kind: "api" }>, world: World) {
  const connection = await resolveConnection(spec.connection, world);
  for (const warning of connection.warnings) world.onWarning?.(warning);
  const accept = spec.contentTypes === undefined ? {} : { accept: acceptHeader(spec.contentTypes) };
  return apiClient(connection, world, throttle(spec.limit, world.clock), spec.userAgent, accept);
}

/** Reads `api`, `kubeconfig:PATH`, an `http(s)://` URL, or `files:PATH[,PATH…]`. Throws on anything else. */
export function parseSourceSpec(text: string, userAgent: string): SourceSpec {
  const limit: Limit = { qps: 5, burst: 10 };
  const api = (connection: ConnectionOptions): SourceSpec => ({ kind: "api", connection, limit, userAgent });
  if (text === "api") return api({});
  if (/^https?:\/\//.test(text)) return api({ master: text });
  const [, scheme, rest] = /^(kubeconfig|files):(.+)$/.exec(text) ?? [];
  if (scheme === "kubeconfig" && rest) return api({ kubeconfig: rest });
  const paths = (rest ?? "").split(",").filter((path) => path !== "");
  if (scheme === "files" && paths.length > 0) return { kind: "files", paths };
  throw new Error(
    `Cannot use source ${JSON.stringify(text)}: it is not api, kubeconfig:PATH, files:PATH[,PATH…] or a URL`,
  );
}

/** The inverse of `parseSourceSpec`. */
export function sourceText(spec: SourceSpec): string {
  if (spec.kind === "files") return `files:${spec.paths.join(",")}`;
  const { master, kubeconfig } = spec.connection;
  if (kubeconfig) return `kubeconfig:${kubeconfig}`;
  return master || "api";
}

/** The same user agent as kube-proxy: `kube-proxy/v1.37.0 (linux/amd64) kubernetes/$Format`. */
export function userAgentOf(version: string, platform = process.platform, arch = process.arch): string {
  const goArch = arch === "x64" ? "amd64" : arch === "ia32" ? "386" : arch;
  return `kube-proxy/${version} (${platform}/${goArch}) kubernetes/$Format`;
}
