// Address and credentials of the API server: from a kubeconfig, a URL, or the pod's service account.
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { World } from "../world.ts";
import { type Credentials, credentialsOf } from "./credentials.ts";
import { freshFile, freshMaterial } from "./fresh-file.ts";
import {
  anonymousUser,
  type ClusterEntry,
  hasSecrets,
  parseKubeconfig,
  type UserEntry,
  withoutSecrets,
} from "./kubeconfig.ts";
import { proxyFromEnvironment, proxyUrl } from "./proxy.ts";

export type Connection = {
  /** Includes the path prefix of the API, if any. */
  readonly server: URL;
  /** PEM text of the authorities to trust; empty: those of the system. */
  readonly ca: () => Promise<string>;
  /** Whether the server's certificate is not verified. */
  readonly insecure: boolean;
  /** The name the certificate must have; empty: the host's. */
  readonly tlsServerName: string;
  readonly proxy: URL | null;
  readonly credentials: Credentials;
  /** What is unsafe about this connection, for the log. */
  readonly warnings: readonly string[];
};

/** Both empty: the pod we run in. */
export type ConnectionOptions = {
  readonly kubeconfig?: string;
  readonly master?: string;
  /** Where a service account is mounted in a pod. */
  readonly serviceAccount?: string;
};

export async function resolveConnection(options: ConnectionOptions, world: World): Promise<Connection> {
  const { kubeconfig = "", master = "" } = options;
  if (kubeconfig !== "") {
    const { cluster, user } = parseKubeconfig(await textOf(kubeconfig), kubeconfig);
    return connectionTo(master === "" ? cluster : { ...cluster, server: master }, user, world);
  }
  if (master !== "") return connectionTo(clusterAt(master), anonymousUser, world);
  return inCluster(options.serviceAccount ?? "/var/run/secrets/kubernetes.io/serviceaccount", world);
}

async function inCluster(directory: string, world: World): Promise<Connection> {
  const host = world.env.KUBERNETES_SERVICE_HOST ?? "";
  const port = world.env.KUBERNETES_SERVICE_PORT ?? "";
  if (host === "" || port === "") {
    throw new Error(
      "Cannot find the API: neither kubeconfig nor master is given, and KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set",
    );
  }
  const tokenFile = join(directory, "token");
  await access(tokenFile).catch((error: Error) => {
    throw new Error(`Cannot read token file ${tokenFile}: ${error.message}`, { cause: error });
  });
  const cluster = clusterAt(`https://${host.includes(":") ? `[${host}]` : host}:${port}`);
  const connection = connectionTo(cluster, { ...anonymousUser, tokenFile }, world);
  const ca = freshFile(join(directory, "ca.crt"), world.clock);
  // Without the pod's CA file, use the system's authorities.
  return { ...connection, ca: () => ca.read().catch(() => "") };
}

function connectionTo(cluster: ClusterEntry, user: UserEntry, world: World): Connection {
  if (cluster.insecure && cluster.ca !== null) {
    throw new Error(
      "Cannot use the kubeconfig: insecure-skip-tls-verify and certificate-authority exclude each other; remove one of them",
    );
  }
  const server = serverUrl(cluster);
  const isEncrypted = server.protocol === "https:";
  const ca = freshMaterial(cluster.ca, world.clock);
  return {
    server,
    ca: async () => (await ca?.read()) ?? "",
    insecure: cluster.insecure,
    tlsServerName: cluster.tlsServerName,
    proxy: cluster.proxyUrl === "" ? proxyFromEnvironment(server, world.env) : proxyUrl(cluster.proxyUrl),
    // Like the Go client: credentials are never sent without TLS, and an exec plugin is not run.
    credentials: credentialsOf(isEncrypted ? user : withoutSecrets(user), cluster, world),
    warnings: warningsOf(server, cluster, user),
  };
}

function warningsOf(server: URL, { insecure }: ClusterEntry, user: UserEntry): readonly string[] {
  if (server.protocol === "https:") {
    return insecure
      ? [
          `the certificate of ${server.host} is not verified (insecure-skip-tls-verify): anyone on the network path can read the credentials and change the answers`,
        ]
      : [];
  }
  return hasSecrets(user)
    ? [`no credentials are sent to ${server.host}, because it is reached without TLS; use an https:// server`]
    : [];
}

function clusterAt(server: string): ClusterEntry {
  return { server, ca: null, insecure: false, tlsServerName: "", proxyUrl: "", raw: {} };
}

/** A bare `host:port` means HTTPS where the kubeconfig has settings for it, else HTTP, as for the Go client. */
function serverUrl({ server: text, ca, insecure }: ClusterEntry): URL {
  const scheme = ca !== null || insecure ? "https" : "http";
  const written = text === "" ? "http://localhost:8080" : text.includes("://") ? text : `${scheme}://${text}`;
  const url = URL.canParse(written) ? new URL(written) : null;
  // Neither message quotes the text if it may contain a password.
  if (url === null ? text.includes("@") : url.username !== "" || url.password !== "") {
    throw new Error(
      "Cannot find the API: the server URL contains a user or a password; put them in the user entry of a kubeconfig",
    );
  }
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new Error(`Cannot find the API: ${JSON.stringify(text)} is not an http or https URL`);
  }
  return url;
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Error(`Cannot read kubeconfig ${path}: ${(error as Error).message}`, { cause: error });
  }
}
