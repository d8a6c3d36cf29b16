// All Nodes of a cluster, as a real server lists them: in pages, with their zones.
import { afterEach, expect, it } from "vitest";
import { ApiServer } from "../../playground/api/server.ts";
import { systemClock } from "../observe/clock.ts";
import { parseSourceSpec } from "./index.ts";
import { placesOf } from "./node-names.ts";
import { type RequestFacts, realWorld } from "./world.ts";

let server: ApiServer;
afterEach(() => server.close());

it("reads all Nodes of a large cluster in pages", async () => {
  server = new ApiServer({});
  const node = (i: number) => `node-${String(i).padStart(3, "0")}`;
  for (let i = 0; i < 600; i++)
    server.put({
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: node(i), labels: i % 2 === 0 ? { "topology.kubernetes.io/zone": "a" } : {} },
    });
  await server.listen();
  const requests: RequestFacts[] = [];
  const world = { ...realWorld(systemClock), onRequest: (facts: RequestFacts) => requests.push(facts) };
  const places = await placesOf(parseSourceSpec(server.url, "test"), world);
  expect(places).toHaveLength(600);
  expect(places.slice(0, 2)).toEqual([
    { nodeName: node(0), zone: "a" },
    { nodeName: node(1), zone: "" },
  ]);
  expect(requests).toHaveLength(3);
});
