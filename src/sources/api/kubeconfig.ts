// Reads a kubeconfig: the cluster and user of its current context, with file paths made absolute.
import { dirname, isAbsolute, resolve } from "node:path";
import { parseDocument } from "yaml";
import { type Entry, entryOf, type Fields } from "./entry.ts";
import { isMap } from "./failure.ts";

/** Inline text, or the file that contains it. Inline text takes precedence. */
export type Material = { readonly inline: string } | { readonly file: string } | null;

export type ClusterEntry = {
  readonly server: string;
  readonly ca: Material;
  readonly insecure: boolean;
  readonly tlsServerName: string;
  readonly proxyUrl: string;
  /** As passed to an exec plugin. */
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

export const anonymousUser: UserEntry = {
  token: "",
  tokenFile: "",
  username: "",
  password: "",
  cert: null,
  key: null,
  exec: null,
  impersonate: null,
};

/** Whether it contains any credentials. */
export function hasSecrets({ token, tokenFile, username, cert, exec }: UserEntry): boolean {
  return token !== "" || tokenFile !== "" || username !== "" || cert !== null || exec !== null;
}

/** Keeps impersonation: it names a user and is no credential. */
export function withoutSecrets({ impersonate }: UserEntry): UserEntry {
  return { ...anonymousUser, impersonate };
}

/** Throws an error that names the file and the fault. Relative paths are relative to `path`. */
export function parseKubeconfig(text: string, path: string): { cluster: ClusterEntry; user: UserEntry } {
  const refuse = (why: string): never => {
    throw new Error(`Cannot use kubeconfig ${path}: ${why}`);
  };
  const config = entryOf(rootOf(text, refuse), "", refuse);
  const current = config.text("current-context") || refuse("current-context is not set");
  const context = named(config, "contexts", current, refuse).entry("context");
  const cluster = named(config, "clusters", context?.text("cluster") ?? "", refuse).entry("cluster");
  const userName = context?.text("user") ?? "";
  const user = userName === "" ? null : named(config, "users", userName, refuse).entry("user");
  const directory = dirname(resolve(path));
  const none = entryOf({}, "", refuse);
  return { cluster: clusterOf(cluster ?? none, directory), user: userOf(user ?? none, directory, refuse) };
}

type Refuse = (why: string) => never;

function rootOf(text: string, refuse: Refuse): Fields {
  const document = parseDocument(text);
  const fault = document.errors[0];
  // The parser's own message may quote a secret.
  if (fault) refuse(`it is not valid YAML at line ${lineOf(text, fault.pos[0])} (${fault.code})`);
  const root = (): unknown => {
    try {
      return document.toJS();
    } catch {
      return refuse("it has an alias without an anchor, or too many aliases");
    }
  };
  const config = root();
  return isMap(config) ? config : refuse("it is not an object");
}

function lineOf(text: string, at: number): number {
  return text.slice(0, at).split("\n").length;
}

/** The entry of a list with this name. */
function named(config: Entry, list: string, name: string, refuse: Refuse): Entry {
  const entry = config.entries(list).find((candidate) => candidate.raw.name === name);
  return entry ?? refuse(`there is no ${list.slice(0, -1)} ${JSON.stringify(name)}`);
}

function clusterOf(entry: Entry, directory: string): ClusterEntry {
  return {
    server: entry.text("server"),
    ca: material(entry, "certificate-authority", directory),
    insecure: entry.flag("insecure-skip-tls-verify"),
    tlsServerName: entry.text("tls-server-name"),
    proxyUrl: entry.text("proxy-url"),
    raw: entry.raw,
  };
}

function userOf(entry: Entry, directory: string, refuse: Refuse): UserEntry {
  const provider = entry.entry("auth-provider");
  if (provider !== null)
    refuse(`auth-provider ${JSON.stringify(provider.text("name"))} is no longer supported; use exec`);
  const exec = entry.entry("exec");
  return {
    token: entry.text("token"),
    tokenFile: absolute(entry.text("tokenFile"), directory),
    username: entry.text("username"),
    password: entry.text("password"),
    cert: material(entry, "client-certificate", directory),
    key: material(entry, "client-key", directory),
    exec: exec === null ? null : execOf(exec, directory, refuse),
    impersonate: impersonationOf(entry),
  };
}

function execOf(entry: Entry, directory: string, refuse: Refuse): ExecEntry {
  const command = entry.text("command") || refuse("users[].user.exec.command is not set");
  const apiVersion = entry.text("apiVersion");
  if (!/^client\.authentication\.k8s\.io\/v1(beta1)?$/.test(apiVersion)) {
    refuse(
      `users[].user.exec.apiVersion is ${JSON.stringify(apiVersion)}, not client.authentication.k8s.io/v1 or v1beta1`,
    );
  }
  return {
    apiVersion,
    // A bare name is looked up in PATH, anything with a slash is relative to the file.
    command: command.includes("/") ? absolute(command, directory) : command,
    args: entry.texts("args"),
    env: Object.fromEntries(entry.entries("env").map((each) => [each.text("name"), each.text("value")])),
    installHint: entry.text("installHint"),
    provideClusterInfo: entry.flag("provideClusterInfo"),
    interactiveMode: entry.text("interactiveMode"),
  };
}

function impersonationOf(entry: Entry): Impersonation | null {
  const user = entry.text("as");
  if (user === "") return null;
  const extra = entry.entry("as-user-extra");
  const names = Object.keys(extra?.raw ?? {});
  return {
    user,
    uid: entry.text("as-uid"),
    groups: entry.texts("as-groups"),
    extra: Object.fromEntries(names.map((name) => [name, extra!.texts(name)])),
  };
}

function material(entry: Entry, name: string, directory: string): Material {
  const data = entry.text(`${name}-data`);
  if (data !== "") return { inline: Buffer.from(data, "base64").toString() };
  const file = entry.text(name);
  return file === "" ? null : { file: absolute(file, directory) };
}

function absolute(path: string, directory: string): string {
  return path === "" || isAbsolute(path) ? path : resolve(directory, path);
}
