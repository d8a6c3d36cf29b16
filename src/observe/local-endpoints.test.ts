// Which Services have health check node ports, how many local endpoints they have, and who has none.
import { describe, expect, it } from "vitest";
import { servicePort } from "../../test/support/routed.ts";
import { keyed } from "../model/keyed.ts";
import type { Endpoint, ServicePort } from "../model/snapshot.ts";
import { serviceAnswer } from "./health-answers.ts";
import { openLocalEndpoints } from "./local-endpoints.ts";

const here = "node-1";

function endpoint(address: string, state: Endpoint["state"] = "ready", nodeName = here): Endpoint {
  return { address, port: 8080, state, serving: state !== "unready", nodeName, zoneHints: [], nodeHints: [] };
}

function port(name: string, portName: string, given: Partial<ServicePort>): ServicePort {
  return servicePort(`shop/${name}:${portName}`, {
    externalPolicy: "local",
    healthCheckNodePort: 9376,
    ...given,
  });
}

function local(...ports: ServicePort[]) {
  const view = openLocalEndpoints(here);
  view.update(
    keyed(ports.map((one) => [one.key, one])),
    ports.map((one) => one.key),
  );
  return view;
}

describe("health check node ports", () => {
  it("03/17 04/43 10/56 the same pods of two ports count once", () => {
    const endpoints = [endpoint("10.0.0.1"), endpoint("10.0.0.2")];
    expect(local(port("web", "http", { endpoints }), port("web", "https", { endpoints })).checked()).toEqual([
      { service: "shop/web", port: 9376, localEndpoints: 2 },
    ]);
  });

  it("03/18 10/56 only ready endpoints on this node count", () => {
    const endpoints = [
      endpoint("10.0.0.1", "draining"),
      endpoint("10.0.0.2", "unready"),
      endpoint("10.0.0.3", "ready", "node-2"),
      endpoint("10.0.0.4", "ready", ""),
    ];
    expect(local(port("web", "", { endpoints })).checked()[0]!.localEndpoints).toBe(0);
  });

  it("follows changes port by port", () => {
    const before = port("web", "", { endpoints: [endpoint("10.0.0.1")] });
    const after = { ...before, endpoints: [endpoint("10.0.0.1"), endpoint("10.0.0.2")] };
    const view = local(before, port("api", "", { healthCheckNodePort: 0 }));
    view.update(keyed([[after.key, after]]), [after.key]);
    expect(view.checked()).toEqual([{ service: "shop/web", port: 9376, localEndpoints: 2 }]);
    view.update(keyed(), [after.key]);
    expect(view.checked()).toEqual([]);
  });

  it("03/25 the body, byte by byte", () => {
    expect(serviceAnswer("ns", "svc", 3, true).body).toBe(
      '{\n\t"service": {\n\t\t"namespace": "ns",\n\t\t"name": "svc"\n\t},\n\t"localEndpoints": 3,\n\t"serviceProxyHealthy": true\n}',
    );
  });
});

describe("policy Local without local endpoints", () => {
  const elsewhere = [endpoint("10.0.0.9", "ready", "node-2")];

  it("03/38 counts ports, or Services in ipvs mode", () => {
    const view = local(
      port("web", "http", { endpoints: elsewhere }),
      port("web", "https", { endpoints: elsewhere }),
    );
    expect(view.without("ports")).toEqual({ internal: 0, external: 2 });
    expect(view.without("services")).toEqual({ internal: 0, external: 1 });
  });

  it.each<[string, Partial<ServicePort>, number, number]>([
    ["no endpoints at all", { endpoints: [] }, 0, 0],
    ["only unready ones", { endpoints: [endpoint("10.0.0.9", "unready", "node-2")] }, 0, 0],
    ["draining elsewhere", { endpoints: [endpoint("10.0.0.9", "draining", "node-2")] }, 0, 1],
    ["draining here", { endpoints: [...elsewhere, endpoint("10.0.0.1", "draining")] }, 0, 0],
    ["internal policy", { endpoints: elsewhere, internalPolicy: "local", externalPolicy: "cluster" }, 1, 0],
    ["both policies", { endpoints: elsewhere, internalPolicy: "local" }, 1, 1],
  ])("%s", (_, given, internal, external) => {
    expect(local(port("web", "", { healthCheckNodePort: 0, ...given })).without("ports")).toEqual({
      internal,
      external,
    });
  });
});
