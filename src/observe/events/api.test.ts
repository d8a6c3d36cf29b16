// Events sent to a real server over the client that the Source uses.
import { afterEach, expect, it } from "vitest";
import { ApiServer } from "../../../playground/api/server.ts";
import { openApi } from "../../sources/index.ts";
import { type RequestFacts, realWorld } from "../../sources/world.ts";
import { systemClock } from "../clock.ts";
import { silentLog } from "../log/log.ts";
import { sendWith } from "./api.ts";
import { openEvents } from "./recorder.ts";

let server: ApiServer;
afterEach(() => server.close());

it("an Event is created, becomes a series, and its requests are counted", async () => {
  server = new ApiServer({});
  await server.listen();
  const requests: RequestFacts[] = [];
  const world = { ...realWorld(systemClock), onRequest: (facts: RequestFacts) => requests.push(facts) };
  const limit = { qps: -1, burst: 0 };
  const client = await openApi(
    { kind: "api", connection: { master: server.url }, limit, userAgent: "x" },
    world,
  );
  const dropped: string[] = [];
  const events = openEvents("host-1", {
    clock: systemClock,
    random: Math.random,
    log: silentLog,
    onDropped: (why) => dropped.push(why),
  });
  events.connect(sendWith(client, new AbortController().signal));
  for (let i = 0; i < 2; i++) {
    events.record("Starting", { kind: "Node", name: "node-a" }, "hello");
    await events.drain(5000);
  }
  const path = "/apis/events.k8s.io/v1/namespaces/default/events";
  const { items } = (await client.json({ path }, new AbortController().signal)) as { items: object[] };
  expect(items).toMatchObject([{ reason: "Starting", note: "hello", series: { count: 2 } }]);
  expect(dropped).toEqual([]);
  expect(requests.map(({ method, code }) => [method, code])).toEqual([
    ["POST", 201],
    ["PATCH", 200],
    ["GET", 200],
  ]);
  expect(requests[0]!.cost!.requestBytes).toBeGreaterThan(100);
  expect(requests[0]!.cost!.heldSeconds).toBeNull();
  expect(requests[2]!.cost!.responseBytes).toBeGreaterThan(300);
  await expect(
    sendWith(
      client,
      new AbortController().signal,
    )({ method: "POST", path: "/nowhere", contentType: "application/json", body: "{}" }),
  ).resolves.toBe(404);
  events.close();
  client.close();
});
