// Ways to authenticate to the API: tokens, passwords and plugins; no secret is sent without TLS or printed.
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  base64,
  client,
  clock,
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

useConnections();

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
