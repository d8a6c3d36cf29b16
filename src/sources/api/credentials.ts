// Credentials for the API: headers and client certificate for each request, renewed with their files or plugins.
import type { World } from "../world.ts";
import { execPlugin } from "./exec.ts";
import { freshFile, freshMaterial } from "./fresh-file.ts";
import type { ClusterEntry, Impersonation, UserEntry } from "./kubeconfig.ts";

export type Presented = {
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** PEM text; empty when there is none. */
  readonly cert: string;
  readonly key: string;
};

export type Credentials = {
  current(signal: AbortSignal): Promise<Presented>;
  /** The server rejected them: read them again for the next request. */
  renew(): void;
};

export function credentialsOf(user: UserEntry, cluster: ClusterEntry, world: World): Credentials {
  const tokenFile = user.tokenFile === "" ? null : freshFile(user.tokenFile, world.clock);
  const cert = freshMaterial(user.cert, world.clock);
  const key = freshMaterial(user.key, world.clock);
  const plugin = user.exec === null ? null : execPlugin(user.exec, cluster, world);
  const impersonation = impersonationHeaders(user.impersonate);
  return {
    async current(signal) {
      const fromPlugin = await plugin?.current(signal);
      const token = fromPlugin?.token || (await fromFile()) || user.token;
      return {
        headers: { ...authorization(token, user), ...impersonation },
        cert: fromPlugin?.cert || ((await cert?.read()) ?? ""),
        key: fromPlugin?.key || ((await key?.read()) ?? ""),
      };
    },
    renew() {
      for (const source of [tokenFile, cert, key, plugin]) source?.forget();
    },
  };

  async function fromFile(): Promise<string> {
    try {
      return (await tokenFile?.read())?.trim() ?? "";
    } catch (error) {
      // An inline token is used when the token file does not exist.
      if (user.token !== "") return "";
      throw new Error(`Cannot read token file ${user.tokenFile}: ${(error as Error).message}`, {
        cause: error,
      });
    }
  }
}

function authorization(token: string, { username, password }: UserEntry): Record<string, string> {
  if (token !== "") return { authorization: `Bearer ${token}` };
  if (username === "") return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
}

function impersonationHeaders(as: Impersonation | null): Record<string, string | readonly string[]> {
  if (as === null) return {};
  const extra = Object.entries(as.extra).map(
    ([name, values]) => [`Impersonate-Extra-${encodeURIComponent(name)}`, values] as const,
  );
  return {
    "Impersonate-User": as.user,
    ...(as.uid === "" ? {} : { "Impersonate-Uid": as.uid }),
    ...(as.groups.length === 0 ? {} : { "Impersonate-Group": as.groups }),
    ...Object.fromEntries(extra),
  };
}
