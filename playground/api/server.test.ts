// Tests of the API over real sockets: list, watch, selectors, pages, writes, faults.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ApiServer } from "./server.ts";

let server: ApiServer;

beforeEach(async () => {
  server = new ApiServer({ bookmarkMs: 50 });
  await server.listen();
});

afterEach(() => server.close());

const service = (
  name: string,
  spec: object = { clusterIP: "172.30.0.1" },
  labels: Record<string, string> = {},
) => ({
  kind: "Service",
  metadata: { name, namespace: "shop", labels },
  spec,
});

async function call(method: string, path: string, body?: unknown, contentType = "application/json") {
  const response = await fetch(server.url + path, {
    method,
    ...(body === undefined
      ? {}
      : {
          body: typeof body === "string" ? body : JSON.stringify(body),
          headers: { "content-type": contentType },
        }),
  });
  return {
    code: response.status,
    body: (await response.json()) as Record<string, Untyped>,
    headers: response.headers,
  };
}

const get = (path: string) => call("GET", path);
const names = (list: { body: Record<string, Untyped> }) =>
  list.body.items.map((item: Untyped) => item.metadata.name);

// Answers are read field by field without types, as a script would.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Untyped = any;

/** The first `count` events of a watch. */
async function events(path: string, count: number, during: () => void = () => {}) {
  const aborter = new AbortController();
  const response = await fetch(server.url + path, { signal: aborter.signal });
  const found: Untyped[] = [];
  let text = "";
  during();
  for await (const chunk of response.body!) {
    text += Buffer.from(chunk).toString();
    const lines = text.split("\n");
    text = lines.pop()!;
    found.push(...lines.map((line) => JSON.parse(line)));
    if (found.length >= count) break;
  }
  aborter.abort();
  return found.slice(0, count);
}

describe("lists", () => {
  it("selects by labels and fields", async () => {
    server.put(service("a"));
    server.put(service("b", { clusterIP: "None" }));
    server.put(service("c", { clusterIP: "172.30.0.3" }, { tier: "x", "example.com/proxy": "y" }));
    const list = (query: string) => get(`/api/v1/services?${query}`);
    expect(names(await list("fieldSelector=spec.clusterIP%21%3DNone"))).toEqual(["a", "c"]);
    expect(names(await list("labelSelector=%21example.com%2Fproxy"))).toEqual(["a", "b"]);
    expect(names(await list("labelSelector=tier+in+(x,z),example.com/proxy"))).toEqual(["c"]);
    expect(names(await list("labelSelector=tier!%3Dx"))).toEqual(["a", "b"]);
    expect(names(await list("fieldSelector=metadata.name%3Da"))).toEqual(["a"]);
    expect((await list("fieldSelector=spec.ports%3Da")).body).toMatchObject({
      code: 400,
      reason: "BadRequest",
    });
    expect((await list("labelSelector=%3D%3D")).code).toBe(400);
  });

  it("pages with the version of the first page, and 410 after compaction", async () => {
    for (const name of ["a", "b", "c", "d", "e"]) server.put(service(name));
    const first = await get("/api/v1/services?limit=2");
    server.put(service("bb"));
    server.remove("Service", "shop", "c");
    const token = first.body.metadata.continue;
    const second = await get(`/api/v1/services?limit=2&continue=${token}`);
    expect([...names(first), ...names(second)]).toEqual(["a", "b", "c", "d"]);
    expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
    server.store.compact();
    expect((await get(`/api/v1/services?limit=2&continue=${token}`)).body).toMatchObject({
      code: 410,
      reason: "Expired",
    });
  });

  it("follows the rules of resourceVersion", async () => {
    const { resourceVersion } = server.put(service("a")).metadata;
    server.put(service("b"));
    const list = (query: string) => get(`/api/v1/services?${query}`);
    expect(names(await list(`resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`))).toEqual(["a"]);
    expect(names(await list(`resourceVersion=${resourceVersion}`))).toEqual(["a", "b"]);
    expect((await list("resourceVersion=999")).body.details.causes[0].reason).toBe("ResourceVersionTooLarge");
    expect((await list("resourceVersionMatch=NotOlderThan")).code).toBe(422);
    expect((await list("sendInitialEvents=true")).code).toBe(422);
  });
});

describe("watches", () => {
  it("reports an object that stops matching the selector as deleted", async () => {
    const { resourceVersion } = server.put(service("a")).metadata;
    const path = `/api/v1/services?watch=true&resourceVersion=${resourceVersion}&labelSelector=%21skip`;
    const found = await events(path, 3, () => {
      server.put(service("b"));
      server.put(service("a", { clusterIP: "172.30.0.1" }, { skip: "1" }));
      server.put(service("a"));
    });
    expect(found.map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual([
      "ADDED b",
      "DELETED a",
      "ADDED a",
    ]);
    expect(Number(found[1].object.metadata.resourceVersion)).toBeGreaterThan(
      Number(found[0].object.metadata.resourceVersion),
    );
  });

  it("streams a list and marks its end", async () => {
    server.put(service("a"));
    const query =
      "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    const found = await events(`/api/v1/services?${query}`, 3);
    expect(found.map(({ type }) => type)).toEqual(["ADDED", "BOOKMARK", "BOOKMARK"]);
    expect(found[1].object.metadata.annotations).toEqual({ "k8s.io/initial-events-end": "true" });
    expect((await get("/api/v1/services?watch=true&sendInitialEvents=true")).code).toBe(422);
    server.faults.refuseStreamingLists = true;
    expect((await get(`/api/v1/services?${query}`)).code).toBe(422);
  });

  it("reports 410 inside the stream", async () => {
    server.put(service("a"));
    server.put(service("b"));
    server.store.compact();
    const found = await events("/api/v1/services?watch=true&resourceVersion=1", 1);
    expect(found[0]).toMatchObject({
      type: "ERROR",
      object: { kind: "Status", code: 410, reason: "Expired" },
    });
  });
});

describe("writes", () => {
  const path = "/api/v1/namespaces/shop/services";

  it("creates, replaces with a version check, and deletes", async () => {
    const created = await call("POST", path, { ...service("a"), status: { ignored: true } });
    expect(created.code).toBe(201);
    expect(created.body.status).toBeUndefined();
    expect((await call("POST", path, service("a"))).body.reason).toBe("AlreadyExists");
    const renewed = { ...created.body, spec: { clusterIP: "172.30.0.9" } };
    expect((await call("PUT", `${path}/a`, renewed)).body.spec.clusterIP).toBe("172.30.0.9");
    expect((await call("PUT", `${path}/a`, renewed)).body.reason).toBe("Conflict");
    expect((await call("DELETE", `${path}/a`)).body.status).toBe("Success");
    expect((await get(`${path}/a`)).body).toMatchObject({ code: 404, reason: "NotFound" });
  });

  it("returns with dryRun what it would store or refuse, and stores nothing", async () => {
    const dry = "?dryRun=All";
    const would = await call("POST", path + dry, service("a"));
    expect(would.body.metadata).toMatchObject({ name: "a", uid: expect.any(String) });
    expect(would.body.metadata).not.toHaveProperty("resourceVersion");
    expect((await get(`${path}/a`)).code).toBe(404);
    const { body: stored } = await call("POST", path, service("a"));
    expect((await call("POST", path + dry, service("a"))).body.reason).toBe("AlreadyExists");
    const renewed = { ...stored, spec: { clusterIP: "172.30.0.9" } };
    const { body: dryRun } = await call("PUT", `${path}/a${dry}`, renewed);
    expect([dryRun.spec, dryRun.metadata.resourceVersion]).toEqual([
      renewed.spec,
      stored.metadata.resourceVersion,
    ]);
    const old = { ...renewed, metadata: { ...stored.metadata, resourceVersion: "1" } };
    expect((await call("PUT", `${path}/a${dry}`, old)).body.reason).toBe("Conflict");
    expect((await get(`${path}/a`)).body).toEqual(stored);
  });

  it("supports three kinds of patches and /status, but no server-side apply", async () => {
    await call("POST", path, service("a", { clusterIP: "172.30.0.1", ports: [{ port: 80, name: "web" }] }));
    const patch = (type: string, body: unknown, query = "") =>
      call("PATCH", `${path}/a${query}`, body, `application/${type}`);
    const strategic = await patch("strategic-merge-patch+json", {
      spec: { ports: [{ port: 443, name: "tls" }] },
    });
    expect(strategic.body.spec.ports.map((port: Untyped) => port.port)).toEqual([80, 443]);
    const merged = await patch("merge-patch+json", { spec: { ports: [{ port: 1 }], clusterIP: null } });
    expect(merged.body.spec).toEqual({ ports: [{ port: 1 }] });
    const pointed = await patch("json-patch+json", [
      { op: "test", path: "/spec/ports/0/port", value: 1 },
      { op: "add", path: "/metadata/labels", value: { "a/b": "c" } },
      { op: "replace", path: "/metadata/labels/a~1b", value: "d" },
      { op: "move", from: "/spec/ports/0", path: "/spec/ports/-" },
    ]);
    expect(pointed.body.metadata.labels).toEqual({ "a/b": "d" });
    expect(
      (await patch("json-patch+json", [{ op: "test", path: "/spec/ports/0/port", value: 2 }])).code,
    ).toBe(422);
    for (const nonsense of [[null], [{}], [{ op: "add" }], [{ op: "move", path: "/a", from: 5 }], 5, {}])
      expect((await patch("json-patch+json", nonsense)).code).toBe(400);
    expect((await patch("json-patch+json", [{ op: "remove", path: "" }])).code).toBe(422);
    await patch("merge-patch+json", { spec: { type: "NodePort" } });
    const applied = await patch("apply-patch+yaml", "kind: Service\n", "?fieldManager=me");
    expect(applied.body).toMatchObject({ code: 415, message: expect.stringContaining("kubectl apply") });
    const status = await patch(
      "merge-patch+json",
      { status: { loadBalancer: {} }, spec: { type: "no" } },
      "/status",
    );
    expect(status.body).toMatchObject({ status: { loadBalancer: {} }, spec: { type: "NodePort" } });
    expect((await patch("cbor", "x")).code).toBe(415);
  });

  it("refuses malformed paths and grace periods", async () => {
    await call("POST", path, service("a"));
    expect((await get(`${path}/%zz`)).code).toBe(400);
    expect((await call("DELETE", `${path}/a?gracePeriodSeconds=x`)).code).toBe(400);
    expect((await get(`${path}/a`)).code).toBe(200);
  });

  it("deletes collections by selector", async () => {
    server.put(service("a", {}, { gone: "1" }));
    server.put(service("b"));
    await call("DELETE", `${path}?labelSelector=gone`);
    expect(server.list("Service").map(({ metadata }) => metadata.name)).toEqual(["b"]);
  });

  it("serves every kind under its own path", async () => {
    const slice = {
      kind: "EndpointSlice",
      metadata: { name: "x", namespace: "shop" },
      addressType: "IPv4",
      endpoints: [],
    };
    expect((await call("POST", "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices", slice)).code).toBe(
      201,
    );
    for (const [at, kind] of [
      ["/api/v1/nodes", "Node"],
      ["/api/v1/namespaces", "Namespace"],
      ["/apis/networking.k8s.io/v1/servicecidrs", "ServiceCIDR"],
      ["/apis/events.k8s.io/v1/namespaces/default/events", "Event"],
      ["/api/v1/namespaces/shop/pods", "Pod"],
    ] as const) {
      expect((await call("POST", at, { kind, metadata: { generateName: "x-" } })).code).toBe(201);
    }
    expect((await get("/apis")).body.groups).toHaveLength(4);
    expect((await get("/apis/batch/v1/jobs")).code).toBe(404);
  });
});

describe("faults", () => {
  it("answers with a fault as often as armed", async () => {
    server.faults.arm({ verb: "list", resource: "services" }, { kind: "status", code: 429, retryAfter: 3 });
    expect((await get("/api/v1/nodes")).code).toBe(200);
    const refused = await get("/api/v1/services");
    expect(refused.headers.get("retry-after")).toBe("3");
    expect(refused.body).toMatchObject({ code: 429, reason: "TooManyRequests" });
    expect((await get("/api/v1/services")).code).toBe(200);
  });

  it("resets, truncates, hangs and restarts", async () => {
    server.put(service("a"));
    server.faults.arm({}, { kind: "reset", afterBytes: 10 });
    await expect(get("/api/v1/services")).rejects.toThrow("terminated");
    server.faults.arm({}, { kind: "truncate", afterBytes: 10 });
    await expect(get("/api/v1/services")).rejects.toThrow(SyntaxError);
    server.faults.arm({}, { kind: "hang" });
    const client = new AbortController();
    const hanging = fetch(`${server.url}/api/v1/services`, { signal: client.signal });
    // Aborted before it has arrived, it would leave the fault for the next request.
    await expect.poll(() => server.seen.length).toBe(3);
    setTimeout(() => client.abort(), 50);
    await expect(hanging).rejects.toThrow("aborted");
    const { url } = server;
    await server.restart();
    expect(server.url).toBe(url);
    // The first attempt may reuse a connection from before the restart.
    const answer = await get("/api/v1/services").catch(() => get("/api/v1/services"));
    expect(answer.code).toBe(200);
  });

  it("requires the current token", async () => {
    let token = "one";
    const guarded = new ApiServer({ token: () => token });
    await guarded.listen();
    const sendRequest = (value: string) =>
      fetch(`${guarded.url}/api/v1/services`, { headers: { authorization: `Bearer ${value}` } });
    expect((await sendRequest("one")).status).toBe(200);
    token = "two";
    expect((await sendRequest("one")).status).toBe(401);
    await guarded.close();
  });
});
