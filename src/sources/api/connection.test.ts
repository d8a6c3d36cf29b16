// Ways to connect and authenticate to the API: kubeconfig, pod, URL; certificates, tokens, plugins, proxies.
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, connect, createServer as createTcp, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiServer, type ApiServerOptions } from "../../../playground/api/server.ts";
import { caCert, clientCert, clientKey, serverCert, serverKey } from "../../../test/support/certificates.ts";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import { realWorld, type World } from "../world.ts";
import { apiClient } from "./client.ts";
import { type ConnectionOptions, resolveConnection } from "./connection.ts";
import { ApiFailure } from "./failure.ts";
import { proxyFromEnvironment } from "./proxy.ts";
import { throttle } from "./throttle.ts";

let folder: string;
let server: ApiServer;
let clock: ManualClock;
let env: Record<string, string>;
const open: { close(): void }[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-connection-"));
  clock = manualClock();
  env = { PATH: process.env.PATH! };
});

afterEach(async () => {
  for (const thing of open.splice(0)) thing.close();
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function serve(options: ApiServerOptions = {}) {
  server = new ApiServer(options);
  await server.listen();
}

const world = (): World => ({ ...realWorld(clock), env });

async function client(options: ConnectionOptions) {
  const connection = await resolveConnection(options, world());
  const made = apiClient(connection, world(), throttle({ qps: -1, burst: 0 }, clock), "kube-proxy/v1.37.0");
  open.push(made);
  return made;
}

const signal = () => new AbortController().signal;
const listServices = async (options: ConnectionOptions) =>
  (await client(options)).json({ path: "/api/v1/services" }, signal());
const list = expect.objectContaining({ kind: "ServiceList" });
const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Writes a kubeconfig for the server with these entries and returns its path. */
async function kubeconfig(cluster: object, user: object = {}): Promise<string> {
  const config = {
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: server.url, ...cluster } }],
    users: [{ name: "u", user }],
  };
  await writeFile(join(folder, "config"), JSON.stringify(config));
  return join(folder, "config");
}

const tls = { key: serverKey, cert: serverCert };
const trust = { "certificate-authority-data": base64(caCert), "tls-server-name": "api.example" };

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

describe("tokens", () => {
  it("reads a token file again when it rotates, and immediately when the server refuses", async () => {
    let token = "one";
    await serve({ tls, token: () => token });
    await writeFile(join(folder, "token"), "one\n");
    const made = await client({ kubeconfig: await kubeconfig(trust, { tokenFile: "token" }) });
    const get = () => made.json({ path: "/api/v1/services" }, signal());
    expect(await get()).toEqual(list);
    token = "two";
    await expect(get()).rejects.toThrow("Unauthorized");
    await writeFile(join(folder, "token"), "two\n");
    expect(await Promise.all([get(), get()])).toEqual([list, list]);
    token = "three";
    await writeFile(join(folder, "token"), "three\n");
    clock.advance(60_000);
    expect(await get()).toEqual(list);
  });

  it("sends an inline token, a user with password, and the impersonated user", async () => {
    await serve({ tls, token: () => "secret" });
    const user = {
      token: "secret",
      as: "someone",
      "as-groups": ["a", "b"],
      "as-user-extra": { "x/y": ["1"] },
    };
    expect(await listServices({ kubeconfig: await kubeconfig(trust, user) })).toEqual(list);
    const { headers } = server.seen.at(-1)!;
    expect(headers["impersonate-user"]).toBe("someone");
    expect(headers["impersonate-group"]).toBe("a, b");
    expect(headers["impersonate-extra-x%2fy"]).toBe("1");
    expect(headers["user-agent"]).toBe("kube-proxy/v1.37.0");
    expect(headers.accept).toBe("application/json");
    await server.close();
    await serve({ tls });
    await listServices({ kubeconfig: await kubeconfig(trust, { username: "me", password: "p" }) });
    expect(server.seen.at(-1)!.headers.authorization).toBe(`Basic ${base64("me:p")}`);
  });
});

describe("security/6: credentials without TLS", () => {
  const script = `require("node:fs").writeFileSync(process.argv[1], "")`;
  const exec = () => ({
    apiVersion: "client.authentication.k8s.io/v1",
    command: process.execPath,
    args: ["-e", script, join(folder, "ran")],
  });
  it.each<[string, () => object]>([
    ["a token", () => ({ token: "secret" })],
    ["a token file", () => ({ tokenFile: "token" })],
    ["a user and password", () => ({ username: "me", password: "secret" })],
    ["a plugin", () => ({ exec: exec() })],
  ])("%s is not sent over plain HTTP, with or without a scheme, with a warning", async (_, user) => {
    await serve();
    await writeFile(join(folder, "token"), "secret");
    for (const address of [server.url, new URL(server.url).host]) {
      const path = await kubeconfig({ server: address }, { ...user(), as: "someone" });
      const { warnings } = await resolveConnection({ kubeconfig: path }, world());
      expect(warnings).toEqual([expect.stringContaining("no credentials are sent to 127.0.0.1:")]);
      expect(await listServices({ kubeconfig: path })).toEqual(list);
      const { headers } = server.seen.at(-1)!;
      expect(headers.authorization).toBeUndefined();
      expect(headers["impersonate-user"]).toBe("someone");
      expect(existsSync(join(folder, "ran"))).toBe(false);
    }
  });

  it("a refusal without credentials contains the reason why none were sent", async () => {
    await serve({ token: () => "secret" });
    const path = await kubeconfig({}, { token: "secret" });
    await expect(listServices({ kubeconfig: path })).rejects.toThrow(
      /^Unauthorized: no credentials are sent to/,
    );
  });

  it("a server without scheme is reached by TLS where the kubeconfig has settings for it", async () => {
    await serve({ tls, token: () => "secret" });
    const { host } = new URL(server.url);
    const secured = await kubeconfig({ ...trust, server: host }, { token: "secret" });
    expect(await listServices({ kubeconfig: secured })).toEqual(list);
    const unverified = await kubeconfig(
      { server: host, "insecure-skip-tls-verify": true },
      { token: "secret" },
    );
    expect(await listServices({ kubeconfig: unverified })).toEqual(list);
  });

  it("without credentials plain HTTP is no reason for a warning", async () => {
    await serve();
    expect((await resolveConnection({ master: server.url }, world())).warnings).toEqual([]);
  });
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

describe("security/13: messages without secrets", () => {
  const secret = "eyJhbGciOiJSUzI1NiIsImtpZCI6";
  const execEntry = (source: string) => ({
    exec: {
      apiVersion: "client.authentication.k8s.io/v1",
      command: process.execPath,
      args: ["-e", source, "--", `--token=${secret}`],
    },
  });
  it.each([
    ["its output is a bare token", `console.log("${secret}")`, "its output is not JSON"],
    ["it ends without a word", "process.exit(3)", "it failed with exit code 3"],
    [
      "it complains about the token",
      `console.error("bad token ${secret}"); process.exit(1)`,
      "bad token [redacted]",
    ],
  ])("an exec plugin fails: %s", async (_, source, text) => {
    await serve({ tls });
    const failed = await listServices({ kubeconfig: await kubeconfig(trust, execEntry(source)) }).catch(
      (error: Error) => error.message,
    );
    expect(failed).toBe(`Cannot get credentials from ${process.execPath}: ${text}`);
  });

  it("a kubeconfig that is no YAML, or a URL with a password, is not quoted", async () => {
    await serve();
    const refused = async (text: string) => {
      await writeFile(join(folder, "bad"), text);
      return resolveConnection({ kubeconfig: join(folder, "bad") }, world()).then(
        () => "accepted",
        (error: Error) => error.message.replace(folder, ""),
      );
    };
    expect(await refused(`a: 1\ntoken: [${secret}\nb: "x"\n- ${secret}: %${secret}`)).toMatch(
      /^Cannot use kubeconfig \/bad: it is not valid YAML at line \d+ \([A-Z_]+\)$/,
    );
    expect(await refused(`token: *${secret}`)).toMatch(/: it has an alias without an anchor/);
    for (const cluster of [
      { server: `https://me:${secret}@192.0.2.1` },
      { server: `me:${secret}@192.0.2.1:99999` },
      { "proxy-url": `http://me:${secret}@192.0.2.1:99999` },
    ]) {
      const path = await kubeconfig(cluster);
      const message = await resolveConnection({ kubeconfig: path }, world()).then(
        () => "accepted",
        (error: Error) => error.message,
      );
      expect(message).toMatch(/^Cannot/);
      expect(message).not.toContain(secret);
    }
  });
});

describe("exec plugins", () => {
  /** A plugin that counts its runs and prints a token with that number. */
  async function plugin(status: string, more: object = {}): Promise<object> {
    const script = `
      const fs = require("node:fs");
      const runs = 1 + (fs.existsSync("${folder}/runs") ? Number(fs.readFileSync("${folder}/runs", "utf8")) : 0);
      fs.writeFileSync("${folder}/runs", String(runs));
      fs.writeFileSync("${folder}/info", process.env.KUBERNETES_EXEC_INFO + process.env.EXTRA);
      console.log(JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: ${status} }));`;
    await writeFile(join(folder, "plugin.cjs"), script);
    const apiVersion = "client.authentication.k8s.io/v1";
    const args = [join(folder, "plugin.cjs")];
    return {
      exec: { apiVersion, command: process.execPath, args, env: [{ name: "EXTRA", value: "!" }], ...more },
    };
  }

  it("runs once, again when the credential has expired, and again when the server refuses it", async () => {
    let token = "t1";
    await serve({ tls, token: () => token });
    const expires = new Date(clock.wall() + 600_000).toISOString();
    const user = await plugin(`{ token: "t" + runs, expirationTimestamp: "${expires}" }`);
    const made = await client({ kubeconfig: await kubeconfig(trust, user) });
    const get = () => made.json({ path: "/api/v1/services" }, signal());
    await Promise.all([get(), get()]);
    expect(await get()).toEqual(list);
    token = "t2";
    expect(await get()).toEqual(list);
    token = "t4";
    await expect(get()).rejects.toThrow("Unauthorized");
    token = "t3";
    expect(await get()).toEqual(list);
    token = "t4";
    clock.advance(600_000);
    expect(await get()).toEqual(list);
  });

  it("passes the plugin what it requires, and reports its failures", async () => {
    await serve({ tls });
    const user = await plugin(`{ token: "x" }`, { provideClusterInfo: true });
    await listServices({ kubeconfig: await kubeconfig(trust, user) });
    const info = await readFile(join(folder, "info"), "utf8");
    expect(JSON.parse(info.slice(0, -1))).toMatchObject({
      kind: "ExecCredential",
      spec: { interactive: false, cluster: { server: server.url, "tls-server-name": "api.example" } },
    });
    expect(info.endsWith("!")).toBe(true);
    const listWith = async (user: object) => listServices({ kubeconfig: await kubeconfig(trust, user) });
    await expect(listWith(await plugin("{}"))).rejects.toThrow("neither token nor certificate");
    await expect(listWith(await plugin('{ clientCertificateData: "x" }'))).rejects.toThrow(
      "a certificate without a key",
    );
    await expect(listWith(await plugin("{}", { interactiveMode: "Always" }))).rejects.toThrow("terminal");
    const absent = { command: "no-such-plugin", installHint: "Install it." };
    await expect(listWith(await plugin("{}", absent))).rejects.toThrow("Install it.");
  });
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

describe("proxies", () => {
  const port = (listener: Server) => (listener.address() as AddressInfo).port;
  const listening = async <T extends Server>(listener: T): Promise<T> => {
    await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
    open.push(listener);
    return listener;
  };

  it("tunnels through an HTTP proxy", async () => {
    await serve({ tls });
    const targets: string[] = [];
    const proxy = await listening(
      createHttp().on("connect", (request, socket) => {
        targets.push(`${request.url} ${request.headers["proxy-authorization"]}`);
        const [host, target] = request.url!.split(":");
        const onward = connect(Number(target), host, () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          onward.pipe(socket).pipe(onward);
        });
        socket.on("error", () => onward.destroy());
      }),
    );
    const url = `http://me:secret@127.0.0.1:${port(proxy)}`;
    expect(await listServices({ kubeconfig: await kubeconfig({ ...trust, "proxy-url": url }) })).toEqual(
      list,
    );
    expect(targets).toEqual([`${new URL(server.url).host} Basic ${base64("me:secret")}`]);
  });

  it("reports that the proxy refuses", async () => {
    await serve();
    const proxy = await listening(
      createHttp().on("connect", (_, socket) => socket.end("HTTP/1.1 403 No\r\n\r\n")),
    );
    const path = await kubeconfig({ "proxy-url": `http://127.0.0.1:${port(proxy)}` });
    await expect(listServices({ kubeconfig: path })).rejects.toThrow("answered 403");
    await expect(
      listServices({ kubeconfig: await kubeconfig({ "proxy-url": "gopher://x" }) }),
    ).rejects.toThrow("gopher");
  });

  it("tunnels through SOCKS5", async () => {
    await serve();
    const proxy = await listening(
      createTcp((socket) => {
        socket.once("data", () => {
          socket.write(Buffer.from([5, 0]));
          socket.once("data", (data) => {
            const wanted = data as Buffer;
            const name = wanted.subarray(5, 5 + wanted[4]!).toString();
            const onward = connect(wanted.readUInt16BE(5 + wanted[4]!), name, () => {
              socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 80]));
              onward.pipe(socket).pipe(onward);
            });
            socket.on("error", () => onward.destroy());
          });
        });
      }),
    );
    expect(
      await listServices({
        kubeconfig: await kubeconfig({ "proxy-url": `socks5://127.0.0.1:${port(proxy)}` }),
      }),
    ).toEqual(list);
  });

  it("follows the environment as Go does", () => {
    const via = (url: string, extra: Record<string, string> = {}) =>
      proxyFromEnvironment(new URL(url), { HTTPS_PROXY: "proxy.example:3128", ...extra })?.href ?? null;
    expect(via("https://10.0.0.1")).toBe("http://proxy.example:3128/");
    expect(via("http://10.0.0.1")).toBeNull();
    expect(via("https://127.0.0.1:6443")).toBeNull();
    expect(via("https://localhost")).toBeNull();
    expect(via("https://10.0.0.1", { NO_PROXY: "10.0.0.0/8" })).toBeNull();
    expect(via("https://[fd00::1]", { no_proxy: "fd00::/8" })).toBeNull();
    expect(via("https://api.example.com", { NO_PROXY: "x, .example.com" })).toBeNull();
    expect(via("https://api.example.com:6443", { NO_PROXY: "example.com:443" })).not.toBeNull();
    expect(via("https://notexample.com", { NO_PROXY: "example.com" })).not.toBeNull();
    expect(via("https://10.0.0.1", { NO_PROXY: "*" })).toBeNull();
  });
});
