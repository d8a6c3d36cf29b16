import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareEndpoints, type Endpoint, endpointKey, portLabel } from "./snapshot.ts";

function endpoint(address: string, port: number): Endpoint {
  return { address, port, state: "ready", serving: true, nodeName: "", zoneHints: [], nodeHints: [] };
}

describe("Endpoints", () => {
  it("04/24 compare as the bytes of `address:port`", () => {
    const addresses = fc.constantFrom(
      "10.0.1.1",
      "10.0.1.10",
      "10.0.1.2",
      "10.0.11.1",
      "fd00::1",
      "fd00::1a",
      "fd00::1:1",
      "fd00::11",
    );
    const ports = fc.constantFrom(8, 80, 8080, 443, 9);
    const endpoints = fc.tuple(addresses, ports).map(([address, port]) => endpoint(address, port));
    fc.assert(
      fc.property(endpoints, endpoints, (a, b) => {
        const [left, right] = [endpointKey(a), endpointKey(b)];
        expect(Math.sign(compareEndpoints(a, b))).toBe(left === right ? 0 : left < right ? -1 : 1);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("ServicePorts", () => {
  it("are called by Service and port name", () => {
    expect(portLabel({ service: "shop/web", portName: "http" })).toBe("shop/web:http");
    expect(portLabel({ service: "shop/web", portName: "" })).toBe("shop/web");
  });
});
