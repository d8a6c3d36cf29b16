// Access to the playground API: an unprivileged user is refused, and the kubeconfig of root works.
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { playgroundFor, reasonToSkipPlayground } from "./ground.ts";

const root = join(import.meta.dirname, "..", "..");
const nobody = 65_534;
const compiler = "/usr/bin/cc";
const reason = existsSync(compiler) ? reasonToSkipPlayground() : "no C compiler to build the library with";
const pod = (name: string) => ({ kind: "Pod", metadata: { name, namespace: "shop" } });

describe("security/1: the API of the playground", () => {
  const place = playgroundFor("nftables", reason);
  const folder = mkdtempSync(join(tmpdir(), "turnout-exploit-"));
  const [library, marker] = [join(folder, "preload.so"), join(folder, "marker")];
  const pollution = [{ op: "add", path: "/__proto__/LD_PRELOAD", value: library }];

  beforeAll(() => {
    if (reason !== null) return;
    chmodSync(folder, 0o777);
    const code = `#include <stdio.h>
      #include <unistd.h>
      __attribute__((constructor)) static void loaded(void) {
        FILE *file = fopen("${marker}", "a"); if (file) { fprintf(file, "%d\\n", getuid()); fclose(file); } }\n`;
    writeFileSync(join(folder, "preload.c"), code);
    execFileSync(compiler, ["-shared", "-fPIC", "-o", library, join(folder, "preload.c")]);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("refuses an unprivileged user and does not load their library", async () => {
    const { kubeconfig, api } = place.playground;
    const steps = [
      ["PATCH", "/api/v1/namespaces/shop/services/web", "application/json-patch+json", pollution],
      ["POST", "/api/v1/namespaces/shop/pods", "application/json", pod("exploit")],
      ["POST", "/api/v1/namespaces/shop/pods", "text/plain", pod("exploit")],
      ["GET", "/api/v1/services", "application/json", null],
      ["GET", "/healthz", "application/json", null],
    ];
    const script = `const { request } = require("node:https");
      const sendRequest = ([method, path, type, body]) => new Promise((resolve) => request("${api.url}" + path,
        { method, rejectUnauthorized: false, headers: { "content-type": type } },
        (answer) => { answer.resume(); resolve(answer.statusCode); })
        .on("error", (error) => resolve(error.code)).end(body === null ? "" : JSON.stringify(body)));
      const read = (path) => { try { return require("fs").readFileSync(path, "utf8") } catch (error) { return error.code } };
      (async () => {
        const codes = []; for (const step of ${JSON.stringify(steps)}) codes.push(await sendRequest(step));
        const plain = await fetch("${api.url.replace("https", "http")}").then((a) => a.status, () => "no answer");
        console.log(JSON.stringify({ uid: process.getuid(), codes, plain, kubeconfig: read("${kubeconfig}") }));
      })();`;
    const { stdout } = await promisify(execFile)(process.execPath, ["-e", script], {
      uid: nobody,
      gid: nobody,
      cwd: folder,
      env: { PATH: process.env.PATH },
    });
    expect(JSON.parse(stdout)).toEqual({
      uid: nobody,
      codes: [401, 401, 401, 401, 401],
      plain: "no answer",
      kubeconfig: "EACCES",
    });
    // Programs are started for the pod that root adds.
    await place.playground.settled();
    place.playground.apply(pod("after"));
    await place.playground.settled();
    expect(api.list("Pod").map(({ metadata }) => metadata.name)).not.toContain("exploit");
    expect(existsSync(marker)).toBe(false);
    expect("LD_PRELOAD" in {}).toBe(false);
  });

  it("protects the prototype from clients with the token too", async () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    const service = "/api/v1/namespaces/shop/services/web";
    const spec = { metadata: { labels: JSON.parse('{"constructor":"b"}') as object } };
    expect(await sendRequest("PATCH", service, "json-patch+json", pollution)).toBe(400);
    expect(await sendRequest("PATCH", service, "merge-patch+json", '{"__proto__":{"LD_PRELOAD":"x"}}')).toBe(
      400,
    );
    expect(await sendRequest("PATCH", service, "merge-patch+json", spec)).toBe(200);
    expect(await sendRequest("POST", "/api/v1/namespaces/shop/pods", "json", pod("ordinary"))).toBe(201);
    await place.playground.settled();
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
    expect(existsSync(marker)).toBe(false);
  });

  it("stores the token in files that only root can read", () => {
    const { kubeconfig } = place.playground;
    const modes = [kubeconfig, join(dirname(kubeconfig), "node-kubeconfig"), dirname(kubeconfig)]
      .concat(dirname(dirname(kubeconfig)))
      .map((path) => {
        const { mode, uid } = statSync(path);
        return [(mode & 0o777).toString(8), uid];
      });
    expect(modes).toEqual([
      ["600", 0],
      ["600", 0],
      ["700", 0],
      ["700", 0],
    ]);
    expect(access().token).toMatch(/^[\w-]{43}$/);
  });

  it("listens only on loopback inside the nodes", () => {
    for (const node of ["node-a", "node-b"]) {
      const listening = execFileSync(
        "ip",
        ["netns", "exec", place.playground.namespaceOf(node), "cat", "/proc/net/tcp", "/proc/net/tcp6"],
        { encoding: "utf8" },
      );
      // Local addresses of sockets in state 0A, listen: port 6443 is 192B.
      const at = [...listening.matchAll(/^ +\d+: (\w+):192B \w+:\w+ 0A /gm)].map(([, address]) => address);
      expect(at).toEqual(["0100007F"]);
    }
  });

  it("serves the turnout commands", async () => {
    const turnout = async (...args: string[]) =>
      // doctor ends with another code than 0 when it finds differences.
      (
        await promisify(execFile)(join(root, "bin", "turnout"), args).catch(
          (error: { stdout: string }) => error,
        )
      ).stdout;
    const source = `--source=playground:${process.pid}`;
    expect(await turnout("status", source, "--node=node-b")).toContain("node-b");
    expect(await turnout("explain", "stock-1", "svc/shop/web", source)).toMatch(/^outcome +forward/m);
    expect(await turnout("diff", "--live", source, "--node=node-a")).toContain("kernel holds what it should");
    expect(await turnout("doctor", "migrate", "--to=iptables", source, "--node=node-a")).toContain(
      "iptables",
    );
    expect(await turnout("render", source, "--node=node-a")).toContain("shop/web");
  });

  function access(): { readonly token: string; readonly ca: Buffer } {
    const { clusters, users } = parse(readFileSync(place.playground.kubeconfig, "utf8")) as {
      clusters: [{ cluster: { "certificate-authority-data": string } }];
      users: [{ user: { token: string } }];
    };
    const ca = Buffer.from(clusters[0].cluster["certificate-authority-data"], "base64");
    return { token: users[0].user.token, ca };
  }

  function sendRequest(method: string, path: string, type: string, body: unknown): Promise<number> {
    const { token, ca } = access();
    const headers = { "content-type": `application/${type}`, authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) =>
      request(place.playground.api.url + path, { method, ca, headers, agent: false }, (answer) => {
        answer.resume();
        resolve(answer.statusCode ?? 0);
      })
        .on("error", reject)
        .end(typeof body === "string" ? body : JSON.stringify(body)),
    );
  }
});
