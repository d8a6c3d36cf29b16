// Requests that the API must refuse: without a token, from web pages, with other media types, too large, too deep, with hostile keys.
import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bodyLimit } from "./http/body.ts";
import { checkInput, depthLimit } from "./http/input.ts";
import { resourceOfKind } from "./objects/resources.ts";
import { ApiServer } from "./server.ts";
import { jsonPatch, mergePatch, strategicPatch } from "./verbs/patch.ts";

const token = "a-token";
const services = "/api/v1/namespaces/shop/services";
const service = (name: string, labels: object = {}) => ({ kind: "Service", metadata: { name, labels } });
let server: ApiServer;

beforeEach(async () => {
  server = new ApiServer({ token: () => token });
  await server.listen();
  server.put({ kind: "Service", metadata: { name: "web", namespace: "shop", labels: { app: "web" } } });
});
afterEach(() => server.close());

type TestRequest = {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
};

/** Sends the token and JSON by default; `fetch` would not send every header. */
function sendRequest({ method = "GET", path = services, headers = {}, body = "" }: TestRequest) {
  return new Promise<{ code: number; text: string }>((resolve, reject) => {
    const framing =
      body === "" || "transfer-encoding" in headers ? {} : { "content-length": Buffer.byteLength(body) };
    const all = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      ...framing,
      ...headers,
    };
    const call = request(server.url + path, { method, headers: all, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve({ code: answer.statusCode ?? 0, text }));
    });
    call.on("error", reject);
    call.end(body);
  });
}
const code = async (request: TestRequest) => (await sendRequest(request)).code;
const post = (body: unknown, headers = {}) =>
  code({ method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });
const patch = (type: string, body: unknown) =>
  code({
    method: "PATCH",
    path: `${services}/web`,
    headers: { "content-type": `application/${type}-patch+json` },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

describe("security/1: the API refuses a request", () => {
  it.each(["/healthz", "/version", "/api", "/openapi/v2", "/openapi/v3", services, "/nothing"])(
    "without the token: %s",
    async (path) => {
      expect(await code({ path })).not.toBe(401);
      for (const authorization of ["", "Bearer", "Bearer ", "Bearer a-toke", `Basic ${token}`, token])
        expect(await code({ path, headers: { authorization } })).toBe(401);
    },
  );

  it("for another host, or from a web page", async () => {
    const { host } = new URL(server.url);
    for (const good of [host, "localhost", "LOCALHOST:1", "[::1]:6443", "127.0.0.1"])
      expect(await code({ headers: { host: good } })).toBe(200);
    for (const bad of ["evil.example", "127.0.0.1.evil.example:7443", "127.0.0.2", "localhost."])
      expect(await code({ headers: { host: bad } })).toBe(403);
    for (const origin of ["https://evil.example", "null", server.url])
      expect(await code({ headers: { origin } })).toBe(403);
  });

  it("with another media type, because any web page can send forms and text", async () => {
    const types = [
      "text/plain",
      "",
      "application/x-www-form-urlencoded",
      "application/yaml",
      "application/cbor",
    ];
    const multipart = "multipart/form-data; boundary=x";
    for (const type of [...types, multipart, "text/plain; application/json", "application/merge-patch+json"])
      expect(await post(service("a"), { "content-type": type })).toBe(415);
    expect(await post(service("a"), { "content-encoding": "gzip" })).toBe(415);
    expect(await post(service("a"), { "content-type": "Application/JSON; charset=utf-8" })).toBe(201);
    expect(await patch("unknown", {})).toBe(415);
    const removed = { method: "DELETE", path: `${services}/a` };
    expect(await code({ ...removed, headers: { "content-type": "text/plain" }, body: "{}" })).toBe(415);
    expect(await code(removed)).toBe(200);
  });

  it("with a body of more than 3 MiB, with or without Content-Length", async () => {
    const sized = (bytes: number) =>
      JSON.stringify({ ...service("large"), note: "x".repeat(bytes - 68) }).padEnd(bytes);
    expect(sized(bodyLimit)).toHaveLength(bodyLimit);
    expect(await post(sized(bodyLimit + 1))).toBe(413);
    const { text, code: found } = await sendRequest({
      method: "POST",
      headers: { "transfer-encoding": "chunked" },
      body: sized(bodyLimit + 1),
    });
    expect([found, text]).toEqual([413, expect.stringContaining(`limit is ${bodyLimit}`)]);
    expect(await post(sized(bodyLimit))).toBe(201);
  });

  it("with deep nesting, in any format", async () => {
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    expect(await post(nested(500_000))).toBe(400);
    expect(await post("[".repeat(1_000_000))).toBe(400);
    expect(await patch("merge", nested(depthLimit + 1))).toBe(400);
    expect(await patch("merge", `{"status":${nested(depthLimit - 2)}}`)).toBe(200);
    const deeper = Array.from({ length: depthLimit }, (_, i) => ({
      op: "add",
      path: `/spec${"/a".repeat(i)}`,
      value: {},
    }));
    expect(await patch("json", deeper)).toBe(400);
  });

  it("with a patch that grows exponentially", async () => {
    const doubling = Array.from({ length: 60 }, (_, i) => ({ op: "copy", from: "", path: `/a${i}` }));
    expect(await patch("json", doubling)).toBe(413);
    const many = Array.from({ length: 10_001 }, () => ({ op: "add", path: "/a", value: 1 }));
    expect(await patch("json", many)).toBe(413);
  });

  it("for a watch with malformed selectors, before the stream opens", async () => {
    const path = `${services}?watch=true&labelSelector=%3D%3D`;
    expect(await code({ path })).toBe(400);
    expect(await code({ path: `${services}?continue=bnVsbA` })).toBe(400);
    expect(await code({ path: services })).toBe(200);
  });
});

describe("security/1: hostile keys", () => {
  const inherited = Object.getOwnPropertyNames(Object.prototype);
  const hostile = '{"__proto__":{"polluted":"yes"},"constructor":{"prototype":{"polluted":"yes"}}}';
  const pollution = () => [
    ...Object.getOwnPropertyNames(Object.prototype).filter((name) => !inherited.includes(name)),
    ...Object.keys(Object),
  ];

  it("are refused or stored as plain data in bodies and patches", async () => {
    expect(await post(`{"kind":"Service","metadata":{"name":"a","labels":{"__proto__":"x"}}}`)).toBe(400);
    expect(await post({ ...service("a"), spec: { __proto__: null, constructor: 1, prototype: 2 } })).toBe(
      201,
    );
    expect(await patch("merge", hostile)).toBe(400);
    expect(await patch("strategic-merge", `{"metadata":${hostile}}`)).toBe(400);
    expect(await patch("strategic-merge", { constructor: [1], toString: [{ a: 1 }] })).toBe(200);
    for (const path of ["/__proto__/polluted", "/metadata/__proto__/polluted", "/__proto__"])
      for (const operation of [
        { op: "add", path, value: "yes" },
        { op: "replace", path, value: "yes" },
        { op: "copy", from: "/metadata", path },
        { op: "move", from: "/metadata/labels", path },
        { op: "remove", path },
        { op: "test", path, value: "yes" },
        { op: "copy", from: path, path: "/metadata/x" },
      ])
        expect(await patch("json", [operation])).toBe(400);
    for (const path of ["/constructor/prototype/polluted", "/metadata/toString/polluted"])
      expect(await patch("json", [{ op: "add", path, value: "yes" }])).toBe(422);
    expect(pollution()).toEqual([]);
  });

  it("are plain data to the patch functions", () => {
    const value = JSON.parse(hostile) as object;
    const resource = resourceOfKind("Service")!;
    for (const result of [mergePatch({}, value), strategicPatch(resource, {}, value)]) {
      expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
      expect(JSON.stringify(result)).toBe(hostile);
    }
    expect(jsonPatch({ a: 1 }, [{ op: "add", path: "/constructor", value: 1 }])).toEqual({
      a: 1,
      constructor: 1,
    });
    expect(() => checkInput(value)).toThrow("__proto__");
    expect(pollution()).toEqual([]);
  });

  it("do not select inherited properties", async () => {
    for (const key of ["constructor", "toString", "hasOwnProperty"]) {
      const list = async (selector: string) => {
        const { text } = await sendRequest({
          path: `${services}?labelSelector=${encodeURIComponent(selector)}`,
        });
        return (JSON.parse(text) as { items: unknown[] }).items.length;
      };
      expect([await list(key), await list(`!${key}`), await list(`${key} in (a)`)]).toEqual([0, 1, 0]);
    }
    server.put({ kind: "Service", metadata: { name: "b", namespace: "shop", labels: { constructor: "a" } } });
    expect((await sendRequest({ path: `${services}?labelSelector=constructor%3Da` })).text).toContain(
      '"name":"b"',
    );
  });

  it("are not kinds of protobuf", async () => {
    const text = (tag: number, value: string) => Buffer.from([tag, value.length, ...Buffer.from(value)]);
    const meta = Buffer.concat([text(10, "v1"), text(18, "constructor")]);
    const body = Buffer.concat([
      Buffer.from("k8s\0"),
      Buffer.from([10, meta.length]),
      meta,
      Buffer.from([18, 0]),
    ]);
    const headers = { "content-type": "application/vnd.kubernetes.protobuf" };
    expect(await code({ method: "POST", headers, body })).toBe(415);
  });
});

describe("security/1: linear time", () => {
  it("for merging lists by key", () => {
    let compared = 0;
    const entry = (port: number) => ({
      get port() {
        compared++;
        return port;
      },
    });
    const ports = Array.from({ length: 2_000 }, (_, i) => entry(i));
    const merged = strategicPatch(
      resourceOfKind("Service")!,
      { ports },
      { ports: ports.map((_, i) => entry(i + 1)) },
    );
    expect((merged as { ports: unknown[] }).ports).toHaveLength(2_001);
    expect(compared).toBeLessThan(20_000);
  });
});
