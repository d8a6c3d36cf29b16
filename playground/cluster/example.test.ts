// The playground starts with the objects of examples/shop.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { memoryNetwork } from "../../test/support/memory-network.ts";
import type { ApiObject } from "../api/objects/object.ts";
import { resourceOfKind } from "../api/objects/resources.ts";
import { ApiServer } from "../api/server.ts";
import { mergePatch } from "../api/verbs/patch.ts";
import { admission } from "./admission.ts";
import { Controller } from "./controller.ts";
import { exampleManifests, type Manifest, parseManifests } from "./example.ts";
import { foundation } from "./foundation.ts";

/** The objects of a playground that has just started. */
function startedPlayground(): ApiServer {
  const server = new ApiServer();
  const admit = admission({ services: () => server.list("Service"), hasNamespace: () => true });
  const machine = { kernel: "6", architecture: "x64", cpus: 1, memoryBytes: 1 };
  for (const object of [...foundation(new Date(0), machine), ...parseManifests(exampleManifests)]) {
    const resource = resourceOfKind(object.kind, object.apiVersion as string | undefined)!;
    server.put({ ...admit(resource, object, null, true), kind: object.kind });
  }
  const controller = new Controller(server, memoryNetwork());
  controller.settle();
  controller.close();
  return server;
}

it("user/6: applying examples/shop to a new playground changes nothing", () => {
  const server = startedPlayground();
  const folder = join(import.meta.dirname, "../../examples/shop");
  const shop = parseManifests(readFileSync(join(folder, "shop.yaml"), "utf8"));
  const nameOf = ({ kind, metadata }: Manifest | ApiObject) => `${kind} ${metadata?.name}`;
  const stored = new Map(
    ["Service", "EndpointSlice", "Node", "ServiceCIDR"]
      .flatMap((kind) => server.list(kind))
      .map((object) => [nameOf(object), object]),
  );
  for (const object of shop) {
    const there = stored.get(nameOf(object));
    expect({ [nameOf(object)]: mergePatch(there, object) }).toEqual({ [nameOf(object)]: there });
  }
  // Only the other node is missing in examples/shop.
  const names = shop.map(nameOf);
  expect([...stored.keys()].filter((name) => !names.includes(name))).toEqual(["Node node-b"]);
});
