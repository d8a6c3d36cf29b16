// To which Service a flow belongs: known Frontends, removed ones, and translations by other software, which are never claimed.
import { describe, expect, it, vi } from "vitest";
import { endpoint, ipv4Settings, ipv6Settings, routed, servicePort } from "../../test/support/routed.ts";
import { trackedView } from "../../test/support/tracked-flows.ts";
import type { Flow } from "../model/flow.ts";
import { nftablesBehavior } from "../modes/nftables/behavior.ts";
import type { Routes } from "../routing/routes.ts";
import { type AttributionOptions, attributor } from "./attribute.ts";
import { destinationName } from "./tally.ts";

const web = servicePort("shop/web:http", {
  nodePort: 30_080,
  externalIPs: ["198.51.100.7"],
  loadBalancerIPs: ["198.51.100.8"],
  endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.0.2.1:8080")],
});
const dns = servicePort("kube-system/dns", {
  protocol: "udp",
  port: 53,
  clusterIP: "172.30.0.2",
  endpoints: [endpoint("10.180.0.3:53")],
});
const routes: Routes = { ...routed([web, dns]), serviceCIDRs: ["172.30.0.0/16"] };
const shared: AttributionOptions = { conntrack: "shared" };

/** `shop/web:http clusterIP 10.180.0.1:8080`, `deleted …` or `other …`. */
function attributed(text: string, more: Partial<Flow> = {}, options = shared, of = routes): string {
  const found = attributor(of, nftablesBehavior, options)(trackedView(text, more));
  switch (found.kind) {
    case "service":
      return `${found.routed.port.service} ${found.route.frontend.kind} ${found.to.kind} ${destinationName(found.to)}`;
    case "deleted":
      return `deleted ${found.service}: ${found.because}`;
    case "other":
      return `other: ${found.because}`;
  }
}

it("computes the Routes of a Service once for flows to all of its addresses", () => {
  const fresh = routed([web]);
  const get = vi.spyOn(fresh.ports, "get");
  for (const address of ["172.30.0.10", "198.51.100.7", "198.51.100.8"])
    expect(attributed(`tcp 10.0.1.9:4000 > ${address}:80 > 10.0.2.1:8080`, {}, shared, fresh)).toMatch(
      /^shop/,
    );
  expect(get).toHaveBeenCalledOnce();
  // The next Routes, in which another Service has changed.
  const after = routed([web, dns], ipv4Settings, fresh);
  const again = vi.spyOn(after.ports, "get");
  const flow = "tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.0.2.1:8080";
  expect(attributed(flow, {}, shared, after)).toMatch(/^shop/);
  expect(again).not.toHaveBeenCalled();
  const external = { ...ipv4Settings, externalIPsAllowed: false };
  const refused = routed([web, dns], external);
  expect(attributed("tcp 10.0.1.9:4000 > 198.51.100.7:80 > 10.0.2.1:8080", {}, shared, refused)).toMatch(
    /^other/,
  );
});

describe("a tracked flow belongs to", () => {
  it.each([
    ["tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.1:8080", "shop/web clusterIP endpoint 10.180.0.1:8080"],
    ["tcp 10.0.1.9:4000 > 198.51.100.7:80 > 10.0.2.1:8080", "shop/web externalIP endpoint 10.0.2.1:8080"],
    ["tcp 10.0.1.9:4000 > 198.51.100.8:80 > 10.0.2.1:8080", "shop/web loadBalancerIP endpoint 10.0.2.1:8080"],
    ["tcp 203.0.113.9:4000 > 192.168.0.2:30080 > 10.0.2.1:8080", "shop/web nodePort endpoint 10.0.2.1:8080"],
    ["udp 10.0.1.9:4000 > 172.30.0.2:53 > 10.180.0.3:53", "kube-system/dns clusterIP endpoint 10.180.0.3:53"],
    ["tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.9:8080", "shop/web clusterIP gone 10.180.0.9:8080"],
    // Another port of a pod that still exists.
    ["tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.1:80", "shop/web clusterIP gone 10.180.0.1:80"],
    ["udp 10.0.1.9:4000 > 172.30.0.2:53", "kube-system/dns clusterIP untranslated untranslated"],
  ])("a Service: %s", (flow, answer) => expect(attributed(flow)).toBe(answer));

  it.each([
    [
      "tcp 10.0.1.9:4000 > 172.30.0.99:80 > 10.180.0.1:8080",
      "deleted null: 172.30.0.99 is inside a ServiceCIDR, but belongs to no Service now",
    ],
    [
      "tcp 10.0.1.9:4000 > 172.30.0.10:81 > 10.180.0.1:8080",
      "deleted shop/web: 172.30.0.10 is the cluster IP of shop/web, which no longer has port 81/tcp",
    ],
    // The same port of another protocol.
    [
      "udp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.1:8080",
      "deleted shop/web: 172.30.0.10 is the cluster IP of shop/web, which no longer has port 80/udp",
    ],
  ])("a Service that is gone: %s", (flow, answer) => expect(attributed(flow)).toBe(answer));

  it.each([
    // A hostPort by the CNI plugin portmap: the node's address, translated to a pod.
    "tcp 203.0.113.9:4000 > 192.168.0.2:8443 > 10.180.0.7:443",
    // Docker, or an operator's own DNAT rule, in the range of NodePorts.
    "tcp 203.0.113.9:4000 > 192.168.0.2:30999 > 172.17.0.2:80",
    // A NodePort number at an address of another machine, as an appliance translates it.
    "tcp 203.0.113.9:4000 > 198.51.100.77:30080 > 10.180.0.1:8080",
    // An external address that no Service has.
    "udp 203.0.113.9:4000 > 198.51.100.99:53 > 10.180.0.3:53",
  ])("other software: %s", (flow) =>
    expect(attributed(flow)).toBe(
      "other: translated by other rules, such as a hostPort: no Service has this destination",
    ),
  );

  it.each([
    ["tcp 10.0.1.9:4000 > 10.180.0.1:8080", "no Service has this destination, and it was not translated"],
    // Masqueraded, but not translated at its destination.
    ["udp 10.0.1.9:4000 > 8.8.8.8:53", "no Service has this destination, and it was not translated"],
    ["udp 10.0.1.9:4000 > 172.30.0.99:53", "no Service has this destination, and it was not translated"],
    ["icmp 10.0.1.9:0 > 172.30.0.10:0", "Services do not have this protocol"],
  ])("no Service: %s", (flow, because) => expect(attributed(flow)).toBe(`other: ${because}`));

  it("a removed Frontend only when it is known as removed", () => {
    const removed = new Map([
      ["node/tcp/30999", { label: "shop/old:http", endpoints: ["10.0.2.1:80", "10.0.2.2:80"] }],
      ["198.51.100.99/udp/53", { label: "kube-system/old", endpoints: ["10.180.0.3:53"] }],
    ]);
    const options = { ...shared, removed };
    expect(attributed("tcp 203.0.113.9:4000 > 192.168.0.2:30999 > 10.0.2.2:80", {}, options)).toBe(
      "deleted shop/old:http: shop/old:http was removed from this address",
    );
    expect(attributed("udp 203.0.113.9:4000 > 198.51.100.99:53 > 10.180.0.3:53", {}, options)).toBe(
      "deleted kube-system/old: kube-system/old was removed from this address",
    );
    // A NodePort belongs to addresses of this node alone, and a protocol is part of a Frontend.
    for (const flow of [
      // A hostPort that uses the number by now.
      "tcp 203.0.113.9:4000 > 192.168.0.2:30999 > 10.0.2.9:80",
      "tcp 203.0.113.9:4000 > 198.51.100.77:30999 > 10.0.2.2:80",
      "tcp 203.0.113.9:4000 > 198.51.100.99:53 > 10.180.0.3:53",
    ])
      expect(attributed(flow, {}, options)).toMatch(/^other: translated by other rules/);
  });

  it("a CNI plugin that forwards Services in a zone of its own, unless the Frontend is known", () => {
    const gone = "tcp 10.0.1.9:4000 > 172.30.0.99:80 > 10.180.0.1:8080";
    expect(attributed(gone, { zone: 64_000 })).toMatch(/^other: translated by other rules/);
    const present = "tcp 10.0.1.9:4000 > 172.30.0.10:80 > 10.180.0.1:8080";
    expect(attributed(present, { zone: 7 })).toBe("shop/web clusterIP endpoint 10.180.0.1:8080");
  });

  it("no ServiceCIDR is known: nothing is claimed beside the cluster IPs", () => {
    const of = { ...routes, serviceCIDRs: [] };
    const flow = "tcp 10.0.1.9:4000 > 172.30.0.99:80 > 10.180.0.1:8080";
    expect(attributed(flow, {}, shared, of)).toMatch(/^other: translated by other rules/);
  });

  it("a NodePort only where NodePorts are served", () => {
    const nodePortAddresses = { kind: "some" as const, cidrs: ["192.168.1.0/24"] };
    const of = routed([web], {
      ...ipv4Settings,
      nodePortAddresses,
      localAddresses: ["192.168.0.2", "192.168.1.2"],
    });
    const flow = (address: string) => `tcp 203.0.113.9:4000 > ${address}:30080 > 10.0.2.1:8080`;
    expect(attributed(flow("192.168.1.2"), {}, shared, of)).toBe("shop/web nodePort endpoint 10.0.2.1:8080");
    expect(attributed(flow("192.168.0.2"), {}, shared, of)).toMatch(/^other: translated by other rules/);
  });

  it("a socket of Turnout: on loopback in nftables mode, and everywhere in userspace mode", () => {
    const of = routed([web], { ...ipv4Settings, nftLocalhost: "serve" });
    expect(attributed("tcp 127.0.0.1:4000 > 127.0.0.1:30080", {}, shared, of)).toBe(
      "shop/web nodePort relay relay",
    );
    const own: AttributionOptions = { conntrack: "own" };
    expect(attributed("tcp 10.0.1.9:4000 > 172.30.0.10:80 > 192.168.0.2:41234", {}, own)).toBe(
      "shop/web clusterIP relay relay",
    );
  });

  it("IPv6", () => {
    const six = servicePort("shop/web:http", {
      family: "ipv6",
      clusterIP: "fd30::10",
      nodePort: 30_080,
      endpoints: [endpoint("[fd00:180::1]:8080")],
    });
    const of = { ...routed([six], ipv6Settings), serviceCIDRs: ["fd30::/108"] };
    const to = (text: string) => attributed(`tcp [fd00::9]:4000 > ${text}`, {}, shared, of);
    expect(to("[fd30::10]:80 > [fd00:180::1]:8080")).toBe("shop/web clusterIP endpoint [fd00:180::1]:8080");
    expect(to("[2001:db8::2]:30080 > [fd00:180::1]:8080")).toBe(
      "shop/web nodePort endpoint [fd00:180::1]:8080",
    );
    expect(to("[fd30::11]:80 > [fd00:180::1]:8080")).toMatch(/^deleted null: fd30::11 is inside/);
    expect(to("[fd31::11]:80 > [fd00:180::1]:8080")).toMatch(/^other: translated/);
  });
});
