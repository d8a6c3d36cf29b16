// Fuzzing: random requests with hostile keys, sizes, media types and paths must not affect the server or other objects.

import { Agent, request } from "node:http";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memoryNetwork } from "../test/support/memory-network.ts";
import { resources } from "./api/objects/resources.ts";
import { ApiServer } from "./api/server.ts";
import { admission, checkDelete } from "./cluster/admission.ts";
import { Controller } from "./cluster/controller.ts";
import { exampleManifests, parseManifests } from "./cluster/example.ts";
import { foundation } from "./cluster/foundation.ts";
import { gracefulDeletion } from "./cluster/graceful-deletion.ts";

const hostileKeys = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "",
  "$patch",
  "a/b",
  ".",
];
const words = [
  "web",
  "shop",
  "default",
  "node-a",
  "10.0.1.1",
  "172.30.0.10",
  "None",
  "Local",
  "TCP",
  "\u0000",
  "x".repeat(300),
];
const fieldNames = [
  "metadata name namespace labels annotations ownerReferences deletionTimestamp uid resourceVersion finalizers generateName",
  "spec status type ports port nodePort targetPort protocol clusterIP clusterIPs ipFamilies externalIPs selector replicas",
  "template containers containerPort nodeName terminationGracePeriodSeconds matchLabels loadBalancer ingress ip conditions",
  "endpoints addresses addressType taints podCIDR cidrs regarding eventTime series paused sessionAffinityConfig clientIP",
].flatMap((line) => line.split(" "));
const key = fc.constantFrom(...hostileKeys, ...fieldNames, ...fieldNames);
const scalarValue = fc.oneof(
  fc.constantFrom(null, true, false, 0, -1, 80, 1.5, 1e300, 2 ** 53, ...words),
  fc.string({ maxLength: 20 }),
);

const { value: json } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: "small" },
    scalarValue,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(key, tie("value")), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
  ),
}));

/** Objects that are nearly right get further than nonsense does. */
const examples = parseManifests(exampleManifests).map(
  (object) => JSON.parse(JSON.stringify(object)) as object,
);
const nearly = fc
  .tuple(
    fc.constantFrom(...examples),
    fc.array(fc.tuple(key, json), { maxLength: 3 }),
    fc.integer({ min: 0, max: 3 }),
  )
  .map(([example, changes, level]) => {
    const copy = structuredClone(example) as Record<string, unknown>;
    let place = copy;
    for (let i = 0; i < level; i++) {
      const inner = Object.values(place).filter((each) => typeof each === "object" && each !== null);
      if (inner.length > 0) place = inner[i % inner.length] as Record<string, unknown>;
    }
    for (const [name, value] of changes)
      Object.defineProperty(place, name, { value, enumerable: true, configurable: true, writable: true });
    return copy;
  });

const pointer = fc.oneof(
  fc.array(key, { maxLength: 4 }).map((parts) => parts.map((part) => `/${part}`).join("")),
  fc
    .tuple(fc.constantFrom("", "/metadata", "/constructor"), fc.constantFrom("__proto__", "prototype"))
    .map(([before, name]) => `${before}/${name}/polluted`),
);
const operation = fc.record({
  op: fc.constantFrom("add", "remove", "replace", "move", "copy", "test", "__proto__"),
  path: pointer,
  from: pointer,
  value: json,
});
const deep = fc.integer({ min: 1, max: 20_000 }).map((depth) => "[".repeat(depth) + "]".repeat(depth));
const body = fc.oneof(
  { weight: 4, arbitrary: nearly.map((each) => JSON.stringify(each)) },
  { weight: 3, arbitrary: json.map((each) => JSON.stringify(each) ?? "") },
  { weight: 2, arbitrary: fc.array(operation, { maxLength: 5 }).map((each) => JSON.stringify(each)) },
  { weight: 1, arbitrary: fc.string({ maxLength: 50 }) },
  {
    weight: 1,
    arbitrary: fc
      .uint8Array({ maxLength: 60 })
      .map((bytes) => `k8s\0${Buffer.from(bytes).toString("latin1")}`),
  },
  { weight: 1, arbitrary: deep },
);

const collections = resources.map(({ group, version, namespaced, plural }) => {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return `${root}/${namespaced ? "namespaces/shop/" : ""}${plural}`;
});
const part = fc.constantFrom(
  "web",
  "web-1",
  "node-a",
  "status",
  "scale",
  "..",
  "%2e%2e",
  "__proto__",
  "%zz",
  "%00",
  "constructor",
  "fuzz",
);
const path = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(...collections), fc.array(part, { maxLength: 2 }))
      .map(([at, more]) => [at, ...more].join("/")),
  },
  { weight: 1, arbitrary: fc.array(part, { maxLength: 6 }).map((parts) => `/${parts.join("/")}`) },
);
const option = fc.tuple(
  fc.constantFrom(
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "dryRun",
    "fieldValidation",
    "gracePeriodSeconds",
    "sendInitialEvents",
    "__proto__",
  ),
  fc.oneof(
    fc.constantFrom(
      "true",
      "Strict",
      "All",
      "0",
      "1",
      "-1",
      "1e99",
      "NotOlderThan",
      "Exact",
      "bnVsbA",
      "W10",
      "constructor",
      "!a",
      "a in (",
      "metadata.name=web",
      "==",
    ),
    fc.string({ maxLength: 10 }),
  ),
);
type FuzzRequest = Readonly<Record<"method" | "path" | "query" | "type" | "body", string>>;

const query = fc.array(option, { maxLength: 3 }).map((options) => new URLSearchParams(options).toString());
const anyRequest: fc.Arbitrary<FuzzRequest> = fc.record({
  method: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"),
  path,
  query,
  type: fc.constantFrom(
    "application/json",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
  ),
  body,
});

/** At the place of its kind, with a name of its own or that of the example. */
const creation: fc.Arbitrary<FuzzRequest> = fc
  .tuple(nearly, fc.integer({ min: 0, max: 20 }), fc.constantFrom("POST", "PUT"))
  .map(([object, number, method]) => {
    const { kind, metadata } = object as { kind?: unknown; metadata?: unknown };
    const at =
      collections[
        Math.max(
          0,
          resources.findIndex((resource) => resource.kind === kind),
        )
      ]!;
    const name = number > 10 ? "web" : `fuzz-${number}`;
    const named = { ...object, metadata: { ...(Object(metadata) as object), name } };
    const put = method === "PUT" ? `${at}/${name}` : at;
    return { method, path: put, query: "", type: "application/json", body: JSON.stringify(named) };
  });

/** Nothing else is sent to this one, so that it stays. */
const target = "/api/v1/namespaces/canary/services/target";
const patching: fc.Arbitrary<FuzzRequest> = fc
  .tuple(
    fc.constant(target),
    fc.constantFrom("", "/status", "/scale"),
    fc.constantFrom("merge", "strategic-merge", "json"),
    json,
    fc.array(operation, { minLength: 1, maxLength: 4 }),
  )
  .map(([at, subresource, type, value, operations]) => ({
    method: "PATCH",
    path: at + subresource,
    query: "",
    type: `application/${type}-patch+json`,
    body: JSON.stringify(type === "json" ? operations : { spec: value }),
  }));
/** They end immediately. */
const watching: fc.Arbitrary<FuzzRequest> = fc
  .tuple(fc.constantFrom(...collections), query)
  .map(([at, options]) => ({
    method: "GET",
    path: at,
    query: `watch=true&timeoutSeconds=0&${options}`,
    type: "",
    body: "",
  }));
const fuzzRequest = fc.oneof(anyRequest, creation, patching, watching);

describe("security/1: fuzzed requests", () => {
  const inherited = Object.getOwnPropertyNames(Object.prototype);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let server: ApiServer;
  let controller: Controller;

  beforeAll(async () => {
    const admit = admission({
      services: () => server.list("Service"),
      hasNamespace: (name) => server.list("Namespace").some(({ metadata }) => metadata.name === name),
    });
    server = new ApiServer({
      hooks: { admit, terminate: gracefulDeletion(Date.now), checkDelete: checkDelete },
    });
    await server.listen();
    const machine = { kernel: "6", architecture: "x64", cpus: 1, memoryBytes: 1 };
    for (const object of [...foundation(new Date(0), machine), ...parseManifests(exampleManifests)])
      server.put(object);
    server.put({ kind: "Namespace", metadata: { name: "canary" } });
    server.put({ kind: "Service", metadata: { name: "target", namespace: "canary", labels: { app: "a" } } });
    controller = new Controller(server, memoryNetwork());
    controller.settle();
  });
  afterAll(async () => {
    agent.destroy();
    controller.close();
    await server.close();
  });

  it("never break the server, the prototype or other objects", async () => {
    const codes = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(fc.array(fuzzRequest, { minLength: 1, maxLength: 8 }), async (requests) => {
        for (const each of requests) {
          const { code, text } = await sendRequest(each);
          codes.set(code, (codes.get(code) ?? 0) + 1);
          expect({ code, text: code >= 500 ? text : "" }).toEqual({ code, text: "" });
        }
        controller.settle();
        expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(inherited);
        await canaryLives();
      }),
      { numRuns: 200 },
    );
    // Some requests pass the first checks.
    const seen = [200, 201, 400, 404, 415, 422].filter((code) => (codes.get(code) ?? 0) > 0);
    expect(seen).toEqual([200, 201, 400, 404, 415, 422]);
  });

  let count = 0;
  /** A Service comes, changes and goes as ever. */
  async function canaryLives(): Promise<void> {
    const at = "/api/v1/namespaces/canary/services";
    const name = `canary-${++count}`;
    const spec = { selector: { app: "none" }, ports: [{ port: 80 }] };
    const created = { metadata: { name }, spec };
    const json = "application/json";
    const codes = [
      await sendRequest({ method: "POST", path: at, query: "", type: json, body: JSON.stringify(created) }),
      await sendRequest({
        method: "PATCH",
        path: `${at}/${name}`,
        query: "",
        type: "application/merge-patch+json",
        body: '{"spec":{"sessionAffinity":"ClientIP"}}',
      }),
      await sendRequest({ method: "GET", path: `${at}/${name}`, query: "", type: json, body: "" }),
      await sendRequest({ method: "DELETE", path: `${at}/${name}`, query: "", type: json, body: "" }),
    ].map(({ code }) => code);
    expect(codes).toEqual([201, 200, 200, 200]);
  }

  function sendRequest({ method, path: at, query, type, body: text }: FuzzRequest) {
    return new Promise<{ code: number; text: string }>((resolve, reject) => {
      const bytes = Buffer.from(text, "latin1");
      const headers = { "content-length": bytes.length, ...(type === "" ? {} : { "content-type": type }) };
      const url = new URL(server.url);
      const options = { host: url.hostname, port: url.port, path: `${at}?${query}`, method, headers, agent };
      const call = request(options, (answer) => {
        let read = "";
        answer.setEncoding("utf8").on("data", (chunk: string) => (read += chunk));
        answer.on("end", () => resolve({ code: answer.statusCode ?? 0, text: read }));
      });
      call.on("error", reject);
      call.end(bytes);
    });
  }
});
