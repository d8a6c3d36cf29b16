// A certificate authority for one test cluster: real certificates and keys, made by openssl, gone with the cluster.
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

export type Pki = {
  readonly ca: string;
  readonly server: KeyPair;
  /** A member of `system:masters`: the test's own eyes and hands. */
  readonly admin: KeyPair;
  readonly controllerManager: KeyPair;
  readonly serviceAccount: { readonly key: string; readonly pub: string };
  /** A further client: `/O=system:nodes/CN=system:node:node-a`. */
  client(name: string, subject: string): KeyPair;
};

/** Paths of PEM files. */
export type KeyPair = { readonly key: string; readonly cert: string };

export function createPki(folder: string, serverNames: readonly string[]): Pki {
  const path = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => void execFileSync("openssl", args, { stdio: "pipe" });
  const key = (name: string): string => {
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path(name));
    return path(name);
  };
  const ca = { key: key("ca.key"), cert: path("ca.crt") };
  openssl("req", "-x509", "-new", "-key", ca.key, "-subj", "/CN=test-ca", "-days", "2", "-out", ca.cert);

  const issue = (name: string, subject: string, extensions: string): KeyPair => {
    const pair = { key: key(`${name}.key`), cert: path(`${name}.crt`) };
    const [request, config] = [path(`${name}.csr`), path(`${name}.ext`)];
    writeFileSync(config, extensions);
    openssl("req", "-new", "-key", pair.key, "-subj", subject, "-out", request);
    const signer = ["-CA", ca.cert, "-CAkey", ca.key, "-CAcreateserial"];
    openssl("x509", "-req", "-in", request, ...signer, "-days", "2", "-extfile", config, "-out", pair.cert);
    return pair;
  };
  const client = "extendedKeyUsage=clientAuth\n";
  const names = serverNames.map((name) => (/^[\d.]+$|:/.test(name) ? `IP:${name}` : `DNS:${name}`)).join(",");
  const serviceAccount = { key: key("sa.key"), pub: path("sa.pub") };
  openssl("pkey", "-in", serviceAccount.key, "-pubout", "-out", serviceAccount.pub);
  return {
    ca: ca.cert,
    server: issue("server", "/CN=kube-apiserver", `extendedKeyUsage=serverAuth\nsubjectAltName=${names}\n`),
    admin: issue("admin", "/O=system:masters/CN=admin", client),
    controllerManager: issue("controller-manager", "/CN=system:kube-controller-manager", client),
    serviceAccount,
    client: (name, subject) => issue(name, subject, client),
  };
}
