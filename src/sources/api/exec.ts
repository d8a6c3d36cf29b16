// Runs an exec plugin for credentials and caches its output until it expires.
import type { World } from "../world.ts";
import { isMap } from "./failure.ts";
import type { ClusterEntry, ExecEntry } from "./kubeconfig.ts";

export type ExecCredential = { readonly token: string; readonly cert: string; readonly key: string };

export type ExecPlugin = {
  current(signal: AbortSignal): Promise<ExecCredential>;
  /** The server rejected these credentials: run the plugin again. */
  forget(): void;
};

type Answer = ExecCredential & { readonly expires: number };

export function execPlugin(entry: ExecEntry, cluster: ClusterEntry, world: World): ExecPlugin {
  let answer: Promise<Answer> | null = null;
  return {
    async current(signal) {
      const given = answer;
      const known = given === null ? null : await given.catch(() => null);
      if (known !== null && known.expires > world.clock.wall()) return known;
      // Concurrent requests share one run of the plugin.
      if (answer === given || answer === null) answer = runPlugin(entry, cluster, world, signal);
      return answer;
    },
    forget() {
      answer = null;
    },
  };
}

async function runPlugin(
  entry: ExecEntry,
  cluster: ClusterEntry,
  world: World,
  signal: AbortSignal,
): Promise<Answer> {
  const failed = (message: string) => new Error(`Cannot get credentials from ${entry.command}: ${message}`);
  if (entry.interactiveMode === "Always") throw failed("it requires a terminal, and there is none");
  const env = { ...world.env, ...entry.env, KUBERNETES_EXEC_INFO: execInfo(entry, cluster) };
  try {
    return readAnswer(entry, await world.run({ command: entry.command, args: entry.args, env }, signal));
  } catch (error) {
    const { code } = (error as Error & { cause?: { code?: unknown } }).cause ?? {};
    const hint = code === "ENOENT" && entry.installHint !== "" ? `. ${entry.installHint}` : "";
    throw failed(`${(error as Error).message}${hint}`);
  }
}

function execInfo(entry: ExecEntry, cluster: ClusterEntry): string {
  const { server, tlsServerName, insecure, proxyUrl, raw } = cluster;
  const caData = raw["certificate-authority-data"];
  const shown = {
    server,
    ...(tlsServerName === "" ? {} : { "tls-server-name": tlsServerName }),
    ...(insecure ? { "insecure-skip-tls-verify": true } : {}),
    ...(caData === undefined ? {} : { "certificate-authority-data": caData }),
    ...(proxyUrl === "" ? {} : { "proxy-url": proxyUrl }),
  };
  return JSON.stringify({
    apiVersion: entry.apiVersion,
    kind: "ExecCredential",
    spec: { interactive: false, ...(entry.provideClusterInfo ? { cluster: shown } : {}) },
  });
}

/** The parser's message would quote the output, and with it a token. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("its output is not JSON");
  }
}

function readAnswer(entry: ExecEntry, text: string): Answer {
  const answer = parsed(text);
  if (!isMap(answer) || answer.kind !== "ExecCredential" || !isMap(answer.status)) {
    throw new Error("its output is not an ExecCredential with a status");
  }
  if (answer.apiVersion !== entry.apiVersion)
    throw new Error(`its output is not of version ${entry.apiVersion}`);
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = answer.status;
  const str = (value: unknown) => (typeof value === "string" ? value : "");
  const credential = { token: str(token), cert: str(clientCertificateData), key: str(clientKeyData) };
  if (credential.token === "" && credential.cert === "")
    throw new Error("its output has neither token nor certificate");
  if ((credential.cert === "") !== (credential.key === ""))
    throw new Error("its output has a certificate without a key, or a key without a certificate");
  const expires = Date.parse(str(expirationTimestamp));
  return { ...credential, expires: Number.isFinite(expires) ? expires : Number.POSITIVE_INFINITY };
}
