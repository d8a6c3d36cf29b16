// Ways to connect to the API: kubeconfig, pod, URL; certificates.
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { caCert, clientCert, clientKey, serverKey } from "../../../test/support/certificates.ts";
import {
  base64,
  client,
  env,
  folder,
  kubeconfig,
  list,
  listServices,
  serve,
  server,
  signal,
  tls,
  trust,
  useConnections,
  world,
} from "../../../test/support/connections.ts";
import { resolveConnection } from "./connection.ts";
import { ApiFailure } from "./failure.ts";

useConnections();

describe("TLS", () => {
  it("trusts the given authority for the given name only", async () => {
    await serve({ tls });
    expect(await listServices({ kubeconfig: await kubeconfig(trust) })).toEqual(list);
    const unnamed = await kubeconfig({ ...trust, "tls-server-name": "" });
    await expect(listServices({ kubeconfig: unnamed })).rejects.toThrow("altnames");
    const untrusting = await kubeconfig({ "tls-server-name": "api.example" });
    await expect(listServices({ kubeconfig: untrusting })).rejects.toThrow("Cannot reach");
    expect(
      await listServices({ kubeconfig: await kubeconfig({ "insecure-skip-tls-verify": true }) }),
    ).toEqual(list);
  });

  it("sends a client certificate, inline or from files relative to the kubeconfig", async () => {
    await serve({ tls: { ...tls, clientCA: caCert } });
    await expect(listServices({ kubeconfig: await kubeconfig(trust) })).rejects.toThrow("Unauthorized");
    const inline = { "client-certificate-data": base64(clientCert), "client-key-data": base64(clientKey) };
    expect(await listServices({ kubeconfig: await kubeconfig(trust, inline) })).toEqual(list);
    await writeFile(join(folder, "my.crt"), clientCert);
    await writeFile(join(folder, "my.key"), clientKey);
    await writeFile(join(folder, "ca.crt"), caCert);
    const cluster = { "certificate-authority": "ca.crt", "tls-server-name": "api.example" };
    const files = { "client-certificate": "my.crt", "client-key": join(folder, "my.key") };
    expect(await listServices({ kubeconfig: await kubeconfig(cluster, files) })).toEqual(list);
  });
});

it("an unusable certificate or token is a failure that is retried, since the file may be half written", async () => {
  await serve({ tls });
  const half = { "client-certificate-data": base64(clientCert), "client-key-data": base64(serverKey) };
  const failing = (cluster: object, user: object) =>
    kubeconfig(cluster, user).then((path) => listServices({ kubeconfig: path }));
  await expect(failing(trust, half)).rejects.toThrow(ApiFailure);
  await expect(failing({ ...trust, "certificate-authority-data": "eA==" }, {})).rejects.toThrow(ApiFailure);
  await expect(failing(trust, { token: "a\nb" })).rejects.toThrow(ApiFailure);
  const proxied = { ...trust, "proxy-url": "gopher://x" };
  await expect(failing(proxied, half)).rejects.toThrow(ApiFailure);
});

it("security/10: insecure-skip-tls-verify is refused together with an authority, and alone is warned about", async () => {
  await serve({ tls });
  const insecure = { "insecure-skip-tls-verify": true };
  for (const authority of [trust, { "certificate-authority": "ca.crt" }]) {
    const path = await kubeconfig({ ...authority, ...insecure });
    await expect(resolveConnection({ kubeconfig: path }, world())).rejects.toThrow("exclude each other");
  }
  const { warnings } = await resolveConnection({ kubeconfig: await kubeconfig(insecure) }, world());
  expect(warnings).toEqual([expect.stringMatching(/^the certificate of .* is not verified/)]);
});

describe("where the API is", () => {
  it("uses the service account of the pod", async () => {
    await serve({ tls, token: () => "pod" });
    await expect(resolveConnection({}, world())).rejects.toThrow("KUBERNETES_SERVICE_HOST");
    const { hostname, port } = new URL(server.url);
    env.KUBERNETES_SERVICE_HOST = hostname;
    env.KUBERNETES_SERVICE_PORT = port;
    await expect(resolveConnection({ serviceAccount: folder }, world())).rejects.toThrow("token");
    await writeFile(join(folder, "token"), "pod");
    await writeFile(join(folder, "ca.crt"), caCert);
    const connection = await resolveConnection({ serviceAccount: folder }, world());
    expect(connection.server.href).toBe(`${server.url}/`);
    expect(await connection.ca()).toBe(caCert);
    expect((await connection.credentials.current(signal())).headers).toEqual({ authorization: "Bearer pod" });
    await rm(join(folder, "ca.crt"));
    expect(await (await resolveConnection({ serviceAccount: folder }, world())).ca()).toBe("");
  });

  it("uses a URL alone without credentials, and instead of the kubeconfig's", async () => {
    await serve({ tls, token: () => "t" });
    await expect(listServices({ kubeconfig: await kubeconfig(trust) })).rejects.toThrow("Unauthorized");
    expect((await resolveConnection({ master: "10.0.0.1:8080" }, world())).server.href).toBe(
      "http://10.0.0.1:8080/",
    );
    const path = await kubeconfig({ ...trust, server: "https://192.0.2.1:1" }, { token: "t" });
    expect(await listServices({ kubeconfig: path, master: server.url })).toEqual(list);
    await expect(resolveConnection({ master: "ftp://x" }, world())).rejects.toThrow(
      "not an http or https URL",
    );
  });

  it("keeps the path prefix of the API", async () => {
    await serve();
    const made = await client({ master: `${server.url}/api/` });
    expect(await made.json({ path: "/v1/services" }, signal())).toEqual(list);
  });

  it("reports what is wrong with a kubeconfig", async () => {
    const wrong = async (text: string) => {
      await writeFile(join(folder, "bad"), text);
      return resolveConnection({ kubeconfig: join(folder, "bad") }, world());
    };
    await expect(resolveConnection({ kubeconfig: join(folder, "none") }, world())).rejects.toThrow(
      "Cannot read kubeconfig",
    );
    await expect(wrong("a: [")).rejects.toThrow("Cannot use kubeconfig");
    await expect(wrong("kind: Config")).rejects.toThrow("current-context is not set");
    await expect(wrong("current-context: x")).rejects.toThrow('there is no context "x"');
    const head = "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";
    await expect(wrong(head)).rejects.toThrow('there is no cluster "c"');
    const clusters = "clusters: [{name: c, cluster: {server: 'https://x'}}]\n";
    await expect(wrong(head + clusters)).rejects.toThrow('there is no user "u"');
    const users = "users: [{name: u, user: {auth-provider: {name: gcp}}}]\n";
    await expect(wrong(head + clusters + users)).rejects.toThrow("no longer supported");
    await expect(wrong("a: &a [x]\nb: *nowhere")).rejects.toThrow("Cannot use kubeconfig");
  });

  it("refuses fields of the wrong type by name instead of ignoring them", async () => {
    await serve();
    const refused = async (cluster: object, user: object = {}) =>
      resolveConnection({ kubeconfig: await kubeconfig(cluster, user) }, world()).then(
        () => "",
        ({ message }: Error) => message.replace(/^Cannot use kubeconfig .*?: /, ""),
      );
    expect(await refused({ server: 5 })).toBe("clusters[0].cluster.server is a number, not text");
    expect(await refused({ "insecure-skip-tls-verify": "true" })).toBe(
      "clusters[0].cluster.insecure-skip-tls-verify is text, not true or false",
    );
    expect(await refused({}, { token: 12345 })).toBe("users[0].user.token is a number, not text");
    expect(await refused({}, { "as-groups": "all", as: "me" })).toBe(
      "users[0].user.as-groups is text, not a list",
    );
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command: "x", args: ["-n", 1] };
    expect(await refused({}, { exec })).toBe("users[0].user.exec.args[1] is a number, not text");
    expect(await refused({}, { exec: [] })).toBe("users[0].user.exec is a list, not an object");
    expect(await refused({ "proxy-url": "://" })).toBe('Cannot use proxy "://": it is not a URL');
    expect(await refused({ server: null, "tls-server-name": null }, { token: null })).toBe("");
  });
});
