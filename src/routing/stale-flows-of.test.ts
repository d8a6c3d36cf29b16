// TCP connections to endpoints that are gone: which are selected, and when a pass is due.
import { describe, expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import { trackedView } from "../../test/support/tracked-flows.ts";
import type { Flow } from "../model/flow.ts";
import type { ServicePort } from "../model/snapshot.ts";
import type { Routes } from "./routes.ts";
import { deadTcp } from "./stale-flows-of.ts";

const web = (...at: string[]): ServicePort =>
  servicePort("shop/web", { nodePort: 30_080, endpoints: at.map((each) => endpoint(each)) });
const api = (...at: string[]): ServicePort =>
  servicePort("shop/api", { clusterIP: "172.30.0.11", endpoints: at.map((each) => endpoint(each)) });

/** A history of clusters, and what a pass after the last of them selects. */
function rig() {
  const stale = deadTcp();
  let routes: Routes = routed([]);
  return {
    isDue: (...ports: ServicePort[]): boolean => {
      routes = routed(ports, ipv4Settings, routes);
      return stale.note(routes, routes.changed);
    },
    isSelected: (text: string, more: Partial<Flow> = {}) =>
      stale.begin(() => routes).select(trackedView(text, more)),
  };
}

const toWeb = (place: string) => `tcp 10.0.1.9:4000 > 172.30.0.10:80 > ${place}`;

describe("connections to endpoints that are gone", () => {
  it("a pass is due after the first TCP ports, and when an endpoint is in no Service any more", () => {
    const { isDue } = rig();
    expect(isDue(servicePort("kube-system/dns", { protocol: "udp" }))).toBe(false);
    expect(isDue(web("10.0.2.1:80", "10.0.2.2:80"))).toBe(true);
    expect(isDue(web("10.0.2.1:80", "10.0.2.2:80", "10.0.2.3:80"))).toBe(false);
    expect(isDue(web("10.0.2.1:80", "10.0.2.3:80"), api("10.0.2.1:80"))).toBe(true);
    // Still an endpoint of another Service.
    expect(isDue(web("10.0.2.3:80"), api("10.0.2.1:80"))).toBe(false);
    expect(isDue(web("10.0.2.3:80"), api())).toBe(true);
    // It moves from one Service to another.
    expect(isDue(web(), api("10.0.2.3:80"))).toBe(false);
    expect(isDue(web())).toBe(true);
  });

  it("are selected at every frontend of the Service, once the endpoint is in none", () => {
    const { isDue, isSelected } = rig();
    isDue(web("10.0.2.1:80", "10.0.2.2:80"), api("10.0.2.9:80"));
    expect(isSelected(toWeb("10.0.2.1:80"))).toBe(false);
    isDue(web("10.0.2.2:80"), api("10.0.2.9:80"));
    expect(isSelected(toWeb("10.0.2.1:80"))).toBe(true);
    expect(isSelected("tcp 203.0.113.9:4000 > 192.168.0.2:30080 > 10.0.2.1:80")).toBe(true);
    // An endpoint of another Service is alive, wherever the connection was translated.
    expect(isSelected(toWeb("10.0.2.9:80"))).toBe(false);
  });

  it.each<[string, Partial<Flow>]>([
    [toWeb("10.0.2.1:80"), { state: "TIME_WAIT" }],
    [toWeb("10.0.2.1:80"), { state: "CLOSE" }],
    ["tcp 10.0.1.9:4000 > 172.30.0.10:80", {}],
    // A hostPort, another address at the number of a NodePort, a Service that is gone.
    ["tcp 203.0.113.9:4000 > 192.168.0.2:8443 > 10.0.2.1:80", {}],
    ["tcp 203.0.113.9:4000 > 198.51.100.7:30080 > 10.0.2.1:80", {}],
    ["tcp 10.0.1.9:4000 > 172.30.0.99:80 > 10.0.2.1:80", {}],
  ])("are not: %s %o", (text, more) => {
    const { isDue, isSelected } = rig();
    isDue(web("10.0.2.2:80"));
    expect(isSelected(text, more)).toBe(false);
  });
});
