// Objects from clients that must not crash the controllers, and with them the playground.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { memoryNetwork } from "../../test/support/memory-network.ts";
import { type ApiObject, type Draft, dig } from "../api/objects/object.ts";
import { resourceOfKind } from "../api/objects/resources.ts";
import { ApiServer } from "../api/server.ts";
import { admission } from "./admission.ts";
import { Controller } from "./controller.ts";
import { parseManifests } from "./example.ts";
import { foundation } from "./foundation.ts";
import { gracefulDeletion } from "./graceful-deletion.ts";

let server: ApiServer;
let controller: Controller;
const admit = admission({ services: () => server.list("Service"), hasNamespace: () => true });
const write = (object: Draft & { readonly kind: string }) =>
  server.put({ ...admit(resourceOfKind(object.kind)!, object, null, true), kind: object.kind });

beforeEach(() => {
  server = new ApiServer({ hooks: { admit, terminate: gracefulDeletion(Date.now) } });
  const machine = { kernel: "6", architecture: "x64", cpus: 1, memoryBytes: 1 };
  for (const object of foundation(new Date(0), machine)) server.put(object);
  controller = new Controller(server, memoryNetwork());
});
afterEach(() => controller.close());

const deployment = (replicas: number, metadata: object = {}, spec: object = {}) => ({
  kind: "Deployment",
  metadata: { name: "web", namespace: "default" },
  spec: {
    replicas,
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" }, ...metadata }, spec: { containers: [], ...spec } },
  },
});
const phases = () => server.list("Pod").map((pod: ApiObject) => dig(pod, "status.phase"));

describe("security/1: the controllers continue", () => {
  it("when a node has no address left for a Pod, which stays pending with an Event", () => {
    for (let i = 0; i < 253; i++)
      server.put({
        kind: "Pod",
        metadata: { name: `p-${i}`, namespace: "default" },
        spec: { nodeName: "node-a" },
      });
    controller.settle();
    expect(phases().filter((phase) => phase === "Pending")).toHaveLength(3);
    expect(server.list("Event").map((event) => event.note)).toContainEqual(
      expect.stringContaining("node-a has no address left"),
    );
    server.remove("Pod", "default", "p-0");
    controller.settle();
    expect(phases().filter((phase) => phase === "Pending")).toHaveLength(2);
  });

  it("when a template would terminate its Pods immediately", () => {
    write(deployment(2, { deletionTimestamp: "2001-01-01T00:00:00Z", uid: "x", finalizers: ["a"] }));
    controller.settle();
    expect(phases()).toEqual(["Running", "Running"]);
  });

  it("when a grace period exceeds the range of dates", () => {
    write(deployment(1, {}, { terminationGracePeriodSeconds: 1e300 }));
    controller.settle();
    write(deployment(0, {}, { terminationGracePeriodSeconds: 1e300 }));
    controller.settle();
    const [pod] = server.list("Pod");
    expect(pod?.metadata.deletionGracePeriodSeconds).toBe(86_400);
  });

  it("and refuse too many container ports or node ports", () => {
    const containers = [
      { name: "c", ports: Array.from({ length: 101 }, (_, i) => ({ containerPort: i + 1 })) },
    ];
    expect(() => write(deployment(1, {}, { containers }))).toThrow("at most 100 container ports, not 101");
    const ports = Array.from({ length: 2_700 }, (_, i) => ({ name: `p${i}`, port: i + 1 }));
    const service = { kind: "Service", metadata: { name: "a", namespace: "default" } };
    expect(() => write({ ...service, spec: { type: "NodePort", ports } })).toThrow("no node port is left");
  });

  it("and manifests are validated like requests", () => {
    expect(() => parseManifests('kind: Service\n"__proto__": { a: 1 }\n')).toThrow('"__proto__" is refused');
    expect(() => parseManifests(`kind: Service\nspec: ${"[".repeat(99)}${"]".repeat(99)}\n`)).toThrow(
      "nests deeper",
    );
  });
});
