// How much heap a Service takes until it is in the Plan, and an endpoint: what grows with the cluster.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { serviceObject, sliceObject } from "../bench/lib/cluster.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import { slim } from "../src/manifests/objects.ts";
import { compile } from "../src/modes/nftables/compile.ts";
import { route } from "../src/routing/routes.ts";
import { ipv4Settings } from "./support/routed.ts";

const services = 4000;

it("a Service takes at most 1,800 bytes of heap in nftables mode, and an endpoint 150", () => {
  // Code and the tables of shared text are made by the first round.
  load(1);
  const one = load(1);
  expect(one.objects).toBeLessThan(1080);
  expect(one.routes).toBeLessThan(150);
  expect(one.plan).toBeLessThan(620);
  expect(sum(one)).toBeLessThan(1800);
  const many = load(11);
  expect((sum(many) - sum(one)) / 10).toBeLessThan(150);
});

it("text of an object that is replaced is not kept", () => {
  const cluster = new Cluster("node-a");
  const update = (i: number) => {
    const kind = `${i}`.padEnd(50_000, "x");
    const slice = {
      ...sliceObject(0, 1),
      endpoints: [{ addresses: ["10.0.0.1"], targetRef: { kind, name: "web" } }],
    };
    cluster.upsert("EndpointSlice", slim("EndpointSlice", received(slice)));
    cluster.take();
  };
  update(0);
  const start = heapAfterCollection();
  for (let i = 1; i <= 200; i++) update(i);
  expect(heapAfterCollection() - start).toBeLessThan(2_000_000);
});

type Bytes = { readonly objects: number; readonly routes: number; readonly plan: number };

function sum({ objects, routes, plan }: Bytes): number {
  return objects + routes + plan;
}

/** For each Service, with this many endpoints. */
function load(endpoints: number): Bytes {
  const start = heapAfterCollection();
  const cluster = new Cluster("node-a");
  for (let i = 0; i < services; i++) {
    cluster.upsert("Service", slim("Service", received(serviceObject(i))));
    cluster.upsert("EndpointSlice", slim("EndpointSlice", received(sliceObject(i, endpoints))));
  }
  const snapshot = cluster.take();
  const taken = heapAfterCollection();
  const routes = route(null, snapshot.ipv4, ipv4Settings);
  const routed = heapAfterCollection();
  const plan = compile(null, routes);
  const compiled = heapAfterCollection();
  // All of it is in use until here.
  expect(plan.fragments.size + cluster.events.services).toBe(2 * services);
  const each = (bytes: number) => bytes / services;
  return { objects: each(taken - start), routes: each(routed - taken), plan: each(compiled - routed) };
}

/** Without text that the benchmark's objects share. */
function received(object: object): unknown {
  return JSON.parse(JSON.stringify(object));
}

function heapAfterCollection(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let i = 0; i < 3; i++) collect();
  return process.memoryUsage().heapUsed;
}
