// Tests of the validation errors of the playground API.
import { describe, expect, it } from "vitest";
import type { Failure } from "../api/http/failure.ts";
import type { ApiObject, Draft } from "../api/objects/object.ts";
import { resources } from "../api/objects/resources.ts";
import { schemas } from "../api/objects/schemas.ts";
import { exampleManifests, parseManifests } from "./example.ts";
import { foundation } from "./foundation.ts";
import { check } from "./validation.ts";

const service = (spec: object, metadata: object = {}) => ({
  metadata: { name: "web", namespace: "shop", ...metadata },
  spec: { selector: { app: "web" }, ports: [{ port: 80 }], ...spec },
});

const set = (spec: object) => ({
  metadata: { name: "web", namespace: "shop" },
  spec: {
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [{ name: "echo" }] } },
    ...spec,
  },
});

function answer(kind: string, draft: Draft, old: ApiObject | null = null, strict = true): string {
  try {
    check(kind, draft, old, strict);
    return "fine";
  } catch (error) {
    const { code, message } = error as Failure;
    return `${code} ${message}`;
  }
}

describe("validation", () => {
  it("has a schema for every kind, and accepts the example", () => {
    expect(Object.keys(schemas).sort()).toEqual([...new Set(resources.map(({ kind }) => kind))].sort());
    for (const object of [
      ...foundation(new Date(0), { kernel: "6.1", architecture: "x64", cpus: 2, memoryBytes: 1 }),
      ...parseManifests(exampleManifests),
    ])
      expect(answer(object.kind, object)).toBe("fine");
  });

  it.each([
    [
      { selektor: {} },
      '400 strict decoding error: unknown field "spec.selektor"; did you mean "spec.selector"?',
    ],
    [
      { ports: [{ port: "80" }] },
      '400 Service cannot be read: spec.ports[0].port: must be an integer, not "80"',
    ],
    [{ ports: { port: 80 } }, '400 Service cannot be read: spec.ports: must be a list, not {"port":80}'],
    [
      { selector: { app: true } },
      "400 Service cannot be read: spec.selector.app: must be a string, not true",
    ],
    [{ ports: [{}] }, '422 Service "web" is invalid: spec.ports[0].port: Required value'],
    [{ ports: [{ port: 0 }] }, "spec.ports[0].port: Invalid value: 0: must be from 1 to 65535"],
    [{ ports: [{ port: 80, targetPort: 70_000 }] }, "spec.ports[0].targetPort: Invalid value: 70000"],
    [{ ports: [{ port: 80, nodePort: 80 }] }, "not in the valid range 30000-32767"],
    [{ ports: [{ port: 80 }, { port: 81, name: "b" }] }, "spec.ports[0].name: Required value"],
    [
      {
        ports: [
          { port: 80, name: "a" },
          { port: 81, name: "a" },
        ],
      },
      'spec.ports[1].name: Duplicate value: "a"',
    ],
    [
      {
        ports: [
          { port: 80, name: "a" },
          { port: 80, name: "b" },
        ],
      },
      'spec.ports[1]: Duplicate value: "80/TCP"',
    ],
    [{ type: "Foo" }, 'spec.type: Unsupported value: "Foo": supported values: "ClusterIP", "NodePort"'],
    [{ clusterIP: "10.0.0.1" }, "must be an address of 172.30.0.0/16 or fd30::/112"],
    [{ externalTrafficPolicy: "Local" }, "a Service of type ClusterIP has no external traffic"],
    [{ type: "ExternalName" }, 'spec.externalName: Required value: for example "example.com"'],
  ])("refuses a Service with %j", (spec, message) => {
    expect(answer("Service", service(spec))).toContain(message);
  });

  it("refuses invalid names", () => {
    expect(answer("Service", service({}, { name: "Web_1" }))).toContain('for example "my-name"');
    expect(answer("Namespace", { metadata: { name: "a.b" } })).toContain('for example "my-name"');
    expect(answer("Pod", { metadata: { name: "a.b" } })).toBe("fine");
    expect(answer("Pod", { metadata: { name: "a".repeat(63) } })).toBe("fine");
    expect(answer("Pod", { metadata: { name: "a".repeat(64) } })).toContain("at most 63 characters here");
  });

  it("refuses invalid container ports of Pods and Deployments", () => {
    const pod = {
      containers: [{ name: "a" }, { name: "b", ports: [{ containerPort: 80 }, { containerPort: 65_536 }] }],
    };
    const why = "containers[1].ports[1].containerPort: Invalid value: 65536: must be from 1 to 65535";
    expect(answer("Pod", { metadata: { name: "a" }, spec: pod })).toContain(`spec.${why}`);
    const template = { metadata: { labels: { app: "web" } }, spec: pod };
    expect(answer("Deployment", set({ template }))).toContain(`spec.template.spec.${why}`);
  });

  it("refuses other nodes and a change of podCIDR", () => {
    const node = (name: string, podCIDR: string) => ({ metadata: { name }, spec: { podCIDR } });
    expect(answer("Node", node("node-c", "10.0.3.0/24"))).toContain("are node-a and node-b");
    const old = node("node-a", "10.0.1.0/24") as unknown as ApiObject;
    expect(answer("Node", node("node-a", "10.0.9.0/24"), old)).toContain("it is 10.0.1.0/24");
    expect(answer("Node", node("node-a", "10.0.1.0/24"), old)).toBe("fine");
  });

  it("accepts unknown fields unless validation is strict", () => {
    expect(answer("Service", service({ selektor: {} }), null, false)).toBe("fine");
    expect(answer("Service", service({ ports: [{ port: "80" }] }), null, false)).toContain(
      "must be an integer",
    );
  });

  it("refuses to change a cluster IP or the selector of a Deployment", () => {
    const old = (draft: object) => draft as unknown as ApiObject;
    expect(
      answer("Service", service({ clusterIP: "172.30.0.2" }), old(service({ clusterIP: "172.30.0.1" }))),
    ).toContain("may not change once set: it is 172.30.0.1");
    const other = set({
      selector: { matchLabels: { app: "b" } },
      template: { metadata: { labels: { app: "b" } }, spec: {} },
    });
    expect(answer("Deployment", other, old(set({})))).toContain("spec.selector: Invalid value");
    expect(answer("Deployment", set({}), old(set({})))).toBe("fine");
  });

  it.each([
    [{ selector: { matchLabels: { app: "x" } } }, 'must match spec.selector {"app":"x"}'],
    [{ selector: {} }, "for example {app: web}"],
    [{ replicas: 1000 }, "must be from 0 to 100"],
    [{ template: undefined }, "spec.template: Required value"],
  ])("refuses a Deployment with %j", (spec, message) => {
    expect(answer("Deployment", set(spec))).toContain(message);
  });
});
