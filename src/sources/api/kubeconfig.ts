// Reads a kubeconfig: the cluster and user of its current context, with file paths made absolute.
import { dirname, isAbsolute, resolve } from "node:path";
import { parseDocument } from "yaml";
import { isMap } from "./failure.ts";

/** Text given in place, or the file that holds it. In place wins. */
export type Material = { readonly inline: string } | { readonly file: string } | null;

export type ClusterEntry = {
  readonly server: string;
  readonly ca: Material;
  readonly insecure: boolean;
  readonly tlsServerName: string;
  readonly proxyUrl: string;
  /** As an exec plugin gets to see it. */
  readonly raw: Readonly<Record<string, unknown>>;
};

export type UserEntry = {
  readonly token: string;
  readonly tokenFile: string;
  readonly username: string;
  readonly password: string;
  readonly cert: Material;
  readonly key: Material;
  readonly exec: ExecEntry | null;
  readonly impersonate: Impersonation | null;
};

export type ExecEntry = {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: string;
};

export type Impersonation = {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
};

export const nobody: UserEntry = {
  token: "",
  tokenFile: "",
  username: "",
  password: "",
  cert: null,
  key: null,
  exec: null,
  impersonate: null,
};

/** Throws with the file and what is wrong in it. `path` tells what relative paths are relative to. */
export function parseKubeconfig(text: string, path: string): { cluster: ClusterEntry; user: UserEntry } {
  const document = parseDocument(text);
  const fault = document.errors[0];
  if (fault) throw wrong(path, fault.message.split("\n")[0]!);
  const config = document.toJS() as unknown;
  if (!isMap(config)) throw wrong(path, "it is not an object");
  const current = str(config["current-context"]);
  if (current === "") throw wrong(path, "current-context is not set");
  const context = named(config.contexts, current, "context");
  if (!context) throw wrong(path, `there is no context ${JSON.stringify(current)}`);
  const cluster = named(config.clusters, str(context.cluster), "cluster");
  if (!cluster) throw wrong(path, `there is no cluster ${JSON.stringify(str(context.cluster))}`);
  const userName = str(context.user);
  const user = userName === "" ? {} : named(config.users, userName, "user");
  if (!user) throw wrong(path, `there is no user ${JSON.stringify(userName)}`);
  const directory = dirname(resolve(path));
  return { cluster: clusterOf(cluster, directory), user: userOf(user, directory, path) };
}

type Fields = Readonly<Record<string, unknown>>;

function clusterOf(raw: Fields, directory: string): ClusterEntry {
  return {
    server: str(raw.server),
    ca: material(raw, "certificate-authority", directory),
    insecure: raw["insecure-skip-tls-verify"] === true,
    tlsServerName: str(raw["tls-server-name"]),
    proxyUrl: str(raw["proxy-url"]),
    raw,
  };
}

function userOf(raw: Fields, directory: string, path: string): UserEntry {
  if (isMap(raw["auth-provider"])) {
    throw wrong(
      path,
      `auth-provider ${JSON.stringify(str(raw["auth-provider"].name))} is no longer supported; use exec`,
    );
  }
  return {
    token: str(raw.token),
    tokenFile: absolute(str(raw.tokenFile), directory),
    username: str(raw.username),
    password: str(raw.password),
    cert: material(raw, "client-certificate", directory),
    key: material(raw, "client-key", directory),
    exec: isMap(raw.exec) ? execOf(raw.exec, directory, path) : null,
    impersonate: impersonationOf(raw),
  };
}

function execOf(raw: Fields, directory: string, path: string): ExecEntry {
  const command = str(raw.command);
  const apiVersion = str(raw.apiVersion);
  if (command === "") throw wrong(path, "users[].user.exec.command is not set");
  if (!/^client\.authentication\.k8s\.io\/v1(beta1)?$/.test(apiVersion)) {
    throw wrong(
      path,
      `users[].user.exec.apiVersion is ${JSON.stringify(apiVersion)}, not client.authentication.k8s.io/v1 or v1beta1`,
    );
  }
  const entries = list(raw.env)
    .filter(isMap)
    .map((entry) => [str(entry.name), str(entry.value)] as const);
  return {
    apiVersion,
    // A bare name is looked up in PATH, anything with a slash is relative to the file.
    command: command.includes("/") ? absolute(command, directory) : command,
    args: list(raw.args).map(str),
    env: Object.fromEntries(entries),
    installHint: str(raw.installHint),
    provideClusterInfo: raw.provideClusterInfo === true,
    interactiveMode: str(raw.interactiveMode),
  };
}

function impersonationOf(raw: Fields): Impersonation | null {
  if (str(raw.as) === "") return null;
  const extra = isMap(raw["as-user-extra"]) ? raw["as-user-extra"] : {};
  return {
    user: str(raw.as),
    uid: str(raw["as-uid"]),
    groups: list(raw["as-groups"]).map(str),
    extra: Object.fromEntries(Object.entries(extra).map(([name, values]) => [name, list(values).map(str)])),
  };
}

function material(raw: Fields, name: string, directory: string): Material {
  const data = str(raw[`${name}-data`]);
  if (data !== "") return { inline: Buffer.from(data, "base64").toString() };
  const file = str(raw[name]);
  return file === "" ? null : { file: absolute(file, directory) };
}

function named(entries: unknown, name: string, field: string): Fields | null {
  const entry = list(entries).find((candidate) => isMap(candidate) && candidate.name === name);
  if (!isMap(entry)) return null;
  const inner = entry[field];
  return isMap(inner) ? inner : {};
}

function absolute(path: string, directory: string): string {
  return path === "" || isAbsolute(path) ? path : resolve(directory, path);
}

function str(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function wrong(path: string, message: string): Error {
  return new Error(`Cannot use kubeconfig ${path}: ${message}`);
}
