// Which requests the rate limit delays, and what is reported of each.
import { afterEach, expect, it } from "vitest";
import { ApiServer } from "../../../playground/api/server.ts";
import { systemClock } from "../../observe/clock.ts";
import { openApi } from "../index.ts";
import { type RequestFacts, realWorld } from "../world.ts";

let server: ApiServer;
afterEach(() => server.close());

it("a watch is not rate-limited and is counted, not measured; other requests are both", async () => {
  server = new ApiServer({});
  await server.listen();
  const reported: RequestFacts[] = [];
  const world = { ...realWorld(systemClock), onRequest: (facts: RequestFacts) => reported.push(facts) };
  const connection = { master: server.url };
  const limit = { qps: 0.001, burst: 1 };
  const client = await openApi({ kind: "api", connection, limit, userAgent: "x" }, world);
  const stop = new AbortController();
  const path = "/api/v1/services";
  await client.json({ path }, stop.signal);
  const { body } = await client.stream({ path, query: { watch: "true" } }, stop.signal);
  body.on("error", () => {});
  const late = client.json({ path }, stop.signal);
  stop.abort();
  await expect(late).rejects.toThrow("aborted");
  expect(reported).toMatchObject([
    { method: "GET", code: 200, cost: { requestBytes: 0, responseBytes: expect.any(Number) } },
    { method: "GET", code: 200, cost: null },
  ]);
  client.close();
});

it("requests what clientConnection allows for lists, and JSON for everything else", async () => {
  server = new ApiServer({});
  await server.listen();
  const connection = { master: server.url };
  const limit = { qps: -1, burst: 0 };
  const contentTypes = { contentType: "application/json", acceptContentTypes: "" };
  const path = "/api/v1/services";
  const { signal } = new AbortController();
  for (const given of [{}, { contentTypes }]) {
    const spec = { kind: "api", connection, limit, userAgent: "x", ...given } as const;
    const client = await openApi(spec, realWorld(systemClock));
    await client.read({ path, protobuf: true }, signal);
    await client.json({ path }, signal);
    client.close();
  }
  expect(server.seen.map(({ headers }) => headers.accept)).toEqual([
    "application/vnd.kubernetes.protobuf, */*",
    "application/json",
    "application/json, */*",
    "application/json",
  ]);
});
