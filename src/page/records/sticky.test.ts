// Sticky clients for the page: bounded, not read more often than needed, and never of ports without affinity.
import { expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { endpoint, servicePort } from "../../../test/support/routed.ts";
import { HostError } from "../../host/error.ts";
import type { ServicePort } from "../../model/snapshot.ts";
import type { StickyView } from "../json.ts";
import { type PinnedClients, StickyReader } from "./sticky.ts";

const sticky = servicePort("shop/web", {
  affinity: { seconds: 600 },
  endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.0.2:8080")],
});
const plain = servicePort("shop/web:other", { port: 81, endpoints: [endpoint("10.180.0.1:8081")] });

function reading(pinned: PinnedClients | null) {
  const clock = manualClock();
  const reader = new StickyReader("nftables", { pinned }, clock);
  const ask = async (ports: readonly ServicePort[], service = "shop/web") => {
    const { status, body } = await reader.answer(service, ports);
    return { status, view: JSON.parse(body) as StickyView & { readonly error?: string } };
  };
  return { clock, ask };
}

it("lists the clients of each endpoint, the last pinned first, and counts those that are not listed", async () => {
  const asked: string[] = [];
  const clients = Array.from({ length: 30 }, (_, i) => ({ address: `10.0.1.${i}`, seconds: i }));
  const { ask } = reading(async ({ key }) => {
    asked.push(key);
    return [{ endpoint: "10.180.0.1:8080", set: "affinity-X", clients }];
  });
  const { view } = await ask([plain, sticky]);
  expect(asked).toEqual([sticky.key]);
  expect(view).toMatchObject({
    note: null,
    endpoints: [{ endpoint: "10.180.0.1:8080", set: "affinity-X", count: 30, port: sticky.port }],
  });
  expect(view.endpoints[0]!.clients).toHaveLength(20);
  expect(view.endpoints[0]!.clients[0]).toEqual({ address: "10.0.1.29", seconds: 29 });
});

it("reads a Service again after two seconds, and another one immediately", async () => {
  let readings = 0;
  const { ask, clock } = reading(async () => {
    readings++;
    return [];
  });
  await Promise.all([ask([sticky]), ask([sticky])]);
  clock.advance(1_999);
  await ask([sticky]);
  expect(readings).toBe(1);
  clock.advance(1);
  await ask([sticky]);
  await ask([sticky], "shop/other");
  expect(readings).toBe(3);
});

it("states why there is nothing to read", async () => {
  const never: PinnedClients = () => Promise.reject(new Error("must not be read"));
  expect((await reading(never).ask([plain])).view.note).toBe("no port of the Service has session affinity");
  const many = Array.from({ length: 201 }, (_, i) => endpoint(`10.180.0.${i}:80`));
  expect((await reading(never).ask([{ ...sticky, endpoints: many }])).view.note).toContain("more than 200");
  expect((await reading(null).ask([sticky])).view.note).toContain("nftables mode does not report them");
  const refusing: PinnedClients = () => Promise.reject(new HostError("unavailable", "permission denied"));
  expect(await reading(refusing).ask([sticky])).toMatchObject({
    status: 503,
    view: { error: "cannot read the kernel: permission denied" },
  });
});
