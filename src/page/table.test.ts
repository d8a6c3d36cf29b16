// The table of Services: updated step by step it is what it would be from scratch, and its filters count what they select.
import fc from "fast-check";
import { expect, it } from "vitest";
import { servicePort, settings } from "../../test/clusters.ts";
import { endpoint, servicePort as port, routed } from "../../test/support/routed.ts";
import type { Problem } from "../model/problem.ts";
import type { PortRoutes, Routes } from "../routing/routes.ts";
import { rowOf } from "./row.ts";
import { filterOf, windowOf } from "./service-filter.ts";
import { everything, ServiceTable } from "./table.ts";

function settle(table: ServiceTable): void {
  for (const _ of table.settle());
}

function tableOf(routes: Routes, problems: readonly Problem[]): ServiceTable {
  const table = new ServiceTable();
  for (const [key, each] of routes.ports.entries()) table.set("ipv4", key, each);
  table.setProblems(problems);
  settle(table);
  return table;
}

function only({ ports }: Routes): PortRoutes {
  return ports.values().next().value!;
}

const arbitraryProblems = fc.array(
  fc.record({
    kind: fc.constant("refused" as const),
    object: fc.constantFrom("Service shop/web", "Service shop/dns", "EndpointSlice shop/web-1", "config"),
    field: fc.constant(""),
    message: fc.constantFrom("no", "too large"),
  }),
  { maxLength: 3 },
);

it("step by step, it equals the table from scratch", () => {
  fc.assert(
    fc.property(
      settings("ipv4"),
      fc.array(fc.tuple(fc.array(servicePort("ipv4"), { maxLength: 6 }), arbitraryProblems), {
        minLength: 1,
        maxLength: 5,
      }),
      (place, history) => {
        const table = new ServiceTable();
        let routes: Routes | null = null;
        for (const [ports, problems] of history) {
          routes = routed(ports, place, routes);
          for (const key of routes.changed) table.set("ipv4", key, routes.ports.get(key));
          table.setProblems(problems);
          settle(table);
          const fresh = tableOf(routes, problems);
          const view = table.view(everything, 0, 1000);
          expect({ ...view, revision: 0 }).toEqual({ ...fresh.view(everything, 0, 1000), revision: 0 });
          expect([view.total, table.endpoints]).toEqual([fresh.size, fresh.endpoints]);
        }
      },
    ),
  );
});

it("a Service that changes again between two slices is not forgotten", () => {
  const table = new ServiceTable();
  const names = ["shop/a", "shop/b", "shop/c"];
  for (const name of names) table.set("ipv4", `${name}/tcp/`, only(routed([port(name)])));
  const slices = table.settle(1);
  slices.next();
  const changed = only(routed([port("shop/a", { endpoints: [endpoint("10.0.1.5:80")] })]));
  table.set("ipv4", "shop/a/tcp/", changed);
  for (const _ of slices);
  expect(table.row("shop/a")?.endpoints.ready).toBe(1);
  expect(
    table
      .view(everything, 0, 10)
      .rows.map(({ service }) => service)
      .sort(),
  ).toEqual(names);
});

it("the troubled come first, and windows continue each other", () => {
  const healthy = { endpoints: [endpoint("10.0.1.5:80")] };
  const table = tableOf(
    routed([port("b/ok", healthy), port("a/ok", { ...healthy, port: 81 }), port("z/none", { port: 82 })]),
    [],
  );
  const names = (offset: number, limit: number) =>
    table.view(everything, offset, limit).rows.map(({ service }) => service);
  expect(names(0, 10)).toEqual(["z/none", "a/ok", "b/ok"]);
  expect([...names(0, 2), ...names(2, 2)]).toEqual(names(0, 10));
});

it("filters select by namespace, type, level, name and address, and count what they would select", () => {
  const web = port("shop/web", {
    clusterIP: "172.30.0.10",
    nodePort: 30080,
    endpoints: [endpoint("10.0.1.5:80")],
  });
  const table = tableOf(
    routed([
      web,
      port("shop/none", { clusterIP: "172.30.0.11" }),
      port("x/none", { clusterIP: "172.30.0.12" }),
    ]),
    [],
  );
  const select = (search: string) => {
    const filter = filterOf(new URLSearchParams(search));
    if (!filter.ok) throw new Error(filter.reason);
    return table.view(filter.value, 0, 100);
  };
  const names = (search: string) => select(search).rows.map(({ service }) => service);
  expect(names("namespace=shop")).toEqual(["shop/none", "shop/web"]);
  expect(names("type=NodePort")).toEqual(["shop/web"]);
  expect(names("level=trouble")).toEqual(["shop/none", "x/none"]);
  expect(names("q=WEB")).toEqual(["shop/web"]);
  expect(names("q=30080")).toEqual(["shop/web"]);
  expect(names("q=10.0.1.5")).toEqual(["shop/web"]);
  expect(names("q=nothing")).toEqual([]);
  expect(select("namespace=shop&level=ok").levels).toEqual({ trouble: 1, warning: 0, ok: 1 });
  expect(select("namespace=shop").namespaces).toEqual([
    ["shop", 2],
    ["x", 1],
  ]);
  for (const wrong of ["type=Odd", "level=fine"]) expect(filterOf(new URLSearchParams(wrong)).ok).toBe(false);
  expect(windowOf(new URLSearchParams("offset=x&limit=99999"))).toEqual({ offset: 0, limit: 500 });
});

it.each([
  ["no endpoint", {}, "trouble", "rejects: no usable endpoint"],
  [
    "all terminating",
    { endpoints: [endpoint("10.0.1.5:80", { state: "draining" })] },
    "warning",
    "no endpoint is ready: all that are serving while they terminate",
  ],
  [
    "some not ready",
    { endpoints: [endpoint("10.0.1.5:80"), endpoint("10.0.1.6:80", { state: "unready" })] },
    "warning",
    "1 not ready",
  ],
  [
    "policy Local without a local endpoint",
    { internalPolicy: "local", endpoints: [endpoint("10.0.2.5:80", { nodeName: "node-b" })] },
    "warning",
    "drops traffic of this node: no usable endpoint on it, policy Local",
  ],
  ["nothing", { endpoints: [endpoint("10.0.1.5:80")] }, "ok", undefined],
] as const)("reports %s", (_, more, level, reason) => {
  const row = rowOf([only(routed([port("shop/web", more)]))], []);
  expect([row.level, row.reasons[0]]).toEqual([level, reason]);
});
