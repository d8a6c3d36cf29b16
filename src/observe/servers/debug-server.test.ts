// The pages beside the metrics, on a real socket.

import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { someBuild as build } from "../../../test/support/build-facts.ts";
import { parsePrometheus } from "../../../test/support/prometheus.ts";
import { systemClock } from "../clock.ts";
import { openMetrics } from "../metrics/metrics.ts";
import { type DebugServerWorld, debugPages } from "./debug-server.ts";
import { listen } from "./http.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

type Got = { status: number; headers: Record<string, unknown>; body: string; bytes: Buffer };
type RequestOptions = { method?: string; body?: string; headers?: Record<string, string> };

const started = Date.UTC(2026, 0, 2, 3, 4, 5);

async function debugServer(given: Partial<DebugServerWorld> = {}) {
  const settings = {
    mode: "nftables",
    gates: new Set<string>(),
    kubernetes: "1.37",
    showHidden: false,
  } as const;
  const { print, printSlis, slis } = openMetrics(settings, build, [], systemClock);
  const world: DebugServerWorld = {
    print,
    printSlis,
    slis,
    mode: "nftables",
    config: () => ({ nodePortAddresses: ["primary"] }),
    flags: () =>
      new Map([
        ["v", "2"],
        ["config", "/etc/x"],
      ]),
    status: { startedAt: started, runtime: "node v20", binaryVersion: "1.37.1", emulationVersion: "1.37" },
    setVerbosity: null,
    now: () => started + 3_723_000,
    startTime: started / 1000,
    ...given,
  };
  const server = await listen({ host: "127.0.0.1", port: 0, families: "both" }, debugPages(world), {
    connections: 50,
    onDisplaced() {},
  });
  closers.push(server.close);
  return (path: string, { method = "GET", body = "", headers = {} }: RequestOptions = {}): Promise<Got> =>
    new Promise((resolve, reject) => {
      request({ host: "127.0.0.1", port: server.port, path, method, headers, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          const bytes = Buffer.concat(chunks);
          resolve({ status: response.statusCode!, headers: response.headers, body: bytes.toString(), bytes });
        });
      })
        .on("error", reject)
        .end(body);
    });
}

describe("always there", () => {
  it("03/26 /proxyMode is the mode alone", async () => {
    const { status, headers, body } = await (await debugServer())("/proxyMode");
    expect([status, body]).toEqual([200, "nftables"]);
    expect(headers).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
    });
  });

  it("03/27 /configz shows the configuration with its keywords", async () => {
    const { headers, body } = await (await debugServer())("/configz");
    expect(body).toBe('{"kubeproxy.config.k8s.io":{"nodePortAddresses":["primary"]}}');
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "x-content-type-options": "nosniff",
    });
  });

  it("03/29 /healthz only shows that this server answers", async () => {
    const sendRequest = await debugServer();
    const { status, headers, body } = await sendRequest("/healthz");
    expect([status, body]).toEqual([200, "ok"]);
    expect(headers).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
    });
    expect((await sendRequest("/healthz/ping")).body).toBe("ok");
    expect((await sendRequest("/healthz?verbose")).body).toBe("[+]ping ok\nhealthz check passed\n");
    expect((await sendRequest("/healthz?verbose&exclude=ping&exclude=x")).body).toMatch(
      /^\[\+\]ping excluded: ok\nwarn: .*"x"\n/,
    );
    expect((await sendRequest("/healthz?verbose&exclude=ping,x")).body).toMatch(
      /^\[\+\]ping ok\nwarn: .*"ping,x"\n/,
    );
  });

  it("/metrics is text, compressed for clients that accept that", async () => {
    const sendRequest = await debugServer();
    const { headers, body } = await sendRequest("/metrics");
    expect(headers).toMatchObject({
      "content-type": "text/plain; version=0.0.4; charset=utf-8",
      "process-start-time-unix": String(started / 1000),
    });
    expect(parsePrometheus(body).has("kubernetes_build_info")).toBe(true);
    const zipped = await sendRequest("/metrics", { headers: { "Accept-Encoding": "deflate, gzip;q=0.5" } });
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(zipped.bytes).toString()).toBe(body);
    expect(
      (await sendRequest("/metrics", { headers: { "Accept-Encoding": "gzip;q=0" } })).headers[
        "content-encoding"
      ],
    ).toBeUndefined();
  });

  it("/metrics/slis counts the checks; DELETE resets them", async () => {
    const sendRequest = await debugServer();
    await sendRequest("/healthz");
    await sendRequest("/healthz?exclude=ping");
    expect((await sendRequest("/metrics/slis")).body).toContain(
      'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1\n',
    );
    expect((await sendRequest("/metrics/slis", { method: "DELETE" })).body).toBe("metrics reset\n");
    expect((await sendRequest("/metrics/slis")).body).not.toContain("kubernetes_healthcheck");
  });

  it("unknown paths are 404", async () => {
    const sendRequest = await debugServer();
    for (const path of ["/", "/metrics/", "/proxyMode/x", "/debug/pprof/", "/debug/flags/v", "/debug"]) {
      expect([path, (await sendRequest(path)).status]).toEqual([path, 404]);
    }
  });
});

describe("/flagz and /statusz", () => {
  const object = "as=Flagz;g=config.k8s.io;v=v1beta1";

  it.each([
    [undefined, 200],
    [" ", 200],
    ["text/plain", 200],
    ["*/*", 200],
    ["text/html, */*;q=0.1", 200],
    ["application/json", 406],
    ["application/json;as=Flagz", 406],
    ["application/json;as=Statusz;g=config.k8s.io;v=v1beta1", 406],
    ["text/plain;as=Flagz;g=config.k8s.io;v=v1beta1", 406],
    ["image/png", 406],
  ])("03/30 Accept %s: %i", async (accept, status) => {
    const got = await (await debugServer())("/flagz", {
      headers: accept === undefined ? {} : { Accept: accept },
    });
    expect(got.status).toBe(status);
    const shown = status === 406 ? /"code":406/ : /^\nkube-proxy flagz\nWarning: .*\nconfig=\/etc\/x\nv=2\n$/;
    expect(got.body).toMatch(shown);
  });

  it("/flagz as an object", async () => {
    const sendRequest = await debugServer();
    const flagz = { metadata: { name: "kube-proxy" }, flags: { config: "/etc/x", v: "2" } };
    const json = await sendRequest("/flagz", { headers: { Accept: `application/json;${object}` } });
    expect(JSON.parse(json.body)).toEqual({ kind: "Flagz", apiVersion: "config.k8s.io/v1beta1", ...flagz });
    expect([json.headers["content-type"], json.headers.warning]).toEqual([
      "application/json;g=config.k8s.io;v=v1beta1;as=Flagz",
      undefined,
    ]);
    const yaml = await sendRequest("/flagz", {
      headers: { Accept: `application/yaml;${object.replace("beta", "alpha")}` },
    });
    expect(parse(yaml.body)).toEqual({ kind: "Flagz", apiVersion: "config.k8s.io/v1alpha1", ...flagz });
    expect([yaml.headers["content-type"], yaml.headers.warning]).toEqual([
      "application/yaml;g=config.k8s.io;v=v1alpha1;as=Flagz",
      expect.stringMatching(/^299 /),
    ]);
  });

  it("/statusz shows versions, uptime and paths", async () => {
    const sendRequest = await debugServer();
    const { body } = await sendRequest("/statusz");
    expect(body.split("\n").slice(3)).toEqual([
      "",
      "Started: Fri Jan  2 03:04:05 UTC 2026",
      "Up: 1 hr 02 min 03 sec",
      "Go version: node v20",
      "Binary version: 1.37.1",
      "Emulation version: 1.37",
      "Paths: /configz /flagz /healthz /metrics /proxyMode",
      "",
    ]);
    const json = await sendRequest("/statusz", {
      headers: { Accept: `application/json;${object.replace("Flagz", "Statusz")}` },
    });
    expect(JSON.parse(json.body)).toMatchObject({
      startTime: "2026-01-02T03:04:05Z",
      uptimeSeconds: 3723,
      binaryVersion: "1.37.1",
    });
  });

  it("are not there when their gates are off", async () => {
    const sendRequest = await debugServer({ flags: null, status: null });
    expect([(await sendRequest("/flagz")).status, (await sendRequest("/statusz")).status]).toEqual([
      404, 404,
    ]);
  });
});

describe("profiling", () => {
  it("03/28 PUT /debug/flags/v sets the verbosity; anything but an unsigned integer is 400, other methods 406", async () => {
    const set: number[] = [];
    const sendRequest = await debugServer({ setVerbosity: (verbosity) => set.push(verbosity) });
    const put = async (body: string) => (await sendRequest("/debug/flags/v", { method: "PUT", body })).status;
    expect([
      await put("4"),
      await put("x"),
      await put("-1"),
      await put(""),
      await put("9".repeat(200_000)),
    ]).toEqual([200, 400, 400, 400, 400]);
    expect((await sendRequest("/debug/flags/v")).status).toBe(406);
    expect(set).toEqual([4]);
  });

  it("03/28 /debug/pprof leads to an index; there is a CPU profile", async () => {
    const sendRequest = await debugServer({ setVerbosity() {} });
    const { status, headers } = await sendRequest("/debug/pprof");
    expect([status, headers.location]).toEqual([302, "/debug/pprof/"]);
    expect((await sendRequest("/debug/pprof/")).body).toContain("profile");
    for (const path of ["/debug/flags", "/debug/flags/", "/debug/flags/other"])
      expect((await sendRequest(path)).body).toContain("v<br>");
    expect((await sendRequest("/debug/pprof/goroutine")).status).toBe(404);
    const profile = await sendRequest("/debug/pprof/profile?seconds=0.1");
    expect([profile.status, profile.headers["content-type"]]).toEqual([200, "application/octet-stream"]);
    expect(JSON.parse(profile.body).nodes.length).toBeGreaterThan(0);
  });

  it("security/5: there is no heap snapshot, which contains credentials, but a sentence where it is", async () => {
    const heap = await (await debugServer({ setVerbosity() {} }))("/debug/pprof/heap");
    expect(heap.status).toBe(403);
    expect(heap.body).toContain("run turnout status --heap=FILE as root");
  });
});
