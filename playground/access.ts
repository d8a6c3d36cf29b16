// Access to the API of a playground: a certificate authority and a bearer token for each run, in kubeconfigs that only root can read.

import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { statePath } from "../src/inspect/playgrounds.ts";
import { type Identity, makeIdentity } from "./tls/certificates.ts";

export type Access = { readonly identity: Identity; readonly token: string };

/** Where a node's own proxy reaches the API server: on the loopback of its network namespace. */
export const nodeApiPort = 6443;

/** Created for each run; stored only in memory and in the kubeconfigs. */
export function makeAccess(now: number): Access {
  return {
    identity: makeIdentity(["127.0.0.1", "::1", "localhost"], now),
    token: randomBytes(32).toString("base64url"),
  };
}

/** Only root can enter it. */
export function makeStateFolder(): void {
  const parent = dirname(statePath());
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  chmodSync(parent, 0o700);
  mkdirSync(statePath(), { mode: 0o700 });
}

/** For kubectl and the commands on this machine. */
export function kubeconfigPath(): string {
  return join(statePath(), "kubeconfig");
}

/** For the proxies of the nodes. */
export function nodeKubeconfigPath(): string {
  return join(statePath(), "node-kubeconfig");
}

export function writeKubeconfigs(access: Access, url: string): void {
  const write = (path: string, server: string) =>
    writeFileSync(path, kubeconfigText(access, server), { mode: 0o600, flag: "wx" });
  write(nodeKubeconfigPath(), `https://127.0.0.1:${nodeApiPort}`);
  write(kubeconfigPath(), url);
}

function kubeconfigText({ identity, token }: Access, server: string): string {
  const authority = Buffer.from(identity.ca).toString("base64");
  return `apiVersion: v1
kind: Config
current-context: playground
clusters: [{ name: playground, cluster: { server: "${server}", certificate-authority-data: ${authority} } }]
users: [{ name: playground, user: { token: ${token} } }]
contexts: [{ name: playground, context: { cluster: playground, user: playground, namespace: shop } }]
`;
}
