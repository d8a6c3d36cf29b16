// A server that never ends its list, or sends objects without bounds, costs a bounded number of requests and bytes.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished, vi } from "vitest";
import { service } from "../../../test/support/api-rig.ts";
import {
  bodyOf,
  encoding,
  inBothEncodings,
  patiently,
  rig,
  started,
  status,
} from "../../../test/support/api-story.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { realWorld } from "../world.ts";
import { apiClient } from "./client.ts";
import { resolveConnection } from "./connection.ts";
import { type ListFigures, listAll, listFigures } from "./list.ts";
import { reflectorFigures } from "./reflector.ts";
import { watchedResources } from "./resources.ts";
import { unlimited } from "./throttle.ts";

const { signal } = new AbortController();
const services = watchedResources("node-a").Service;

/** As in a list. */
function item(name: string): object {
  const { kind: _, ...object } = service(name);
  return object;
}

/** Lists from a server whose every page has this many objects and a continue token. */
async function listedWith(figures: Partial<ListFigures>, objects: number) {
  let requests = 0;
  const server = createServer((_, response) => {
    requests++;
    const items = Array.from({ length: objects }, (_, i) => item(`s-${requests}-${i}`));
    const metadata = { resourceVersion: "1", continue: `page-${requests}` };
    const { contentType, body } = bodyOf({ kind: "ServiceList", metadata, items });
    response.writeHead(200, { "content-type": contentType }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const world = realWorld(manualClock());
  const master = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = apiClient(await resolveConnection({ master }, world), world, unlimited, "test");
  onTestFinished(() => {
    client.close();
    server.close();
  });
  const failure = await listAll(client, services, null, signal, { ...listFigures, ...figures }).catch(
    (error: Error) => error.message,
  );
  return { failure, requests };
}

inBothEncodings(() => {
  it("security/15: pages without end, each of them empty", async () => {
    expect(await listedWith({ pages: 40 }, 0)).toEqual({
      failure: "Cannot list services: it has more than 40 pages",
      requests: 40,
    });
  });

  it("security/15: pages without end, each of them full", async () => {
    expect(await listedWith({ objects: 1200 }, 500)).toEqual({
      failure: "Cannot list services: it has more than 1200 objects",
      requests: 3,
    });
  });

  it("security/15: pages whose bytes add up", async () => {
    const { failure, requests } = await listedWith({ bytes: encoding === "json" ? 250_000 : 100_000 }, 500);
    expect(failure).toMatch(/^Cannot read the response: it is larger than \d+ bytes$/);
    expect(requests).toBe(3);
  });

  it.each([
    ["objects", 10, "Cannot list services: it has more than 10 objects"],
    ["bytes", 2000, "Cannot list services: it is larger than 2000 bytes"],
  ])("security/15: a streaming list beyond the limit of %s changes nothing", async (limit, most, message) => {
    const list = { ...listFigures, [limit]: most };
    await started({
      figures: { ...reflectorFigures, list },
      prepare(server) {
        for (let i = 0; i < 30; i++) server.put(service(`s${i}`, `172.30.0.${i}`));
      },
    });
    await vi.waitFor(() => expect(status().lastError?.message).toBe(message), patiently);
    expect(rig.snapshots).toEqual([]);
  });
});

it("security/15: an object nested very deeply is read like any other", async () => {
  const depth = 200_000;
  const deep = `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const line = JSON.stringify({ type: "ADDED", object: service("deep", "172.30.0.9") });
  const metadata = `"resourceVersion":"1000","annotations":{"a":${deep}},`;
  await started({ encoding: "json", prepare: (server) => void server.put(service("web")) });
  await vi.waitFor(() => expect(rig.server.watches({ resource: "services" })).toHaveLength(1), patiently);
  for (const watch of rig.server.watches({ resource: "services" }))
    watch.wire.send(`${line.replace('"metadata":{', `"status":${deep},"metadata":{${metadata}`)}\n`);
  const names = () => [...(rig.snapshots.at(-1)?.ipv4.ports.keys() ?? [])];
  await vi.waitFor(() => expect(names()).toContain("shop/web/tcp/web"), patiently);
  await vi.waitFor(() => expect(rig.snapshots.at(-1)?.problems.length).toBeGreaterThan(0), patiently);
  expect(rig.snapshots.at(-1)!.problems[0]).toMatchObject({
    object: "Service shop/deep",
    kind: "wrong-type",
  });
  expect(status().failures).toBe(0);
});
