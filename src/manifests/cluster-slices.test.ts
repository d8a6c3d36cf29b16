// Which Endpoints a Cluster makes of EndpointSlices.
import { describe, expect, it } from "vitest";
import { endpoint, service, slice } from "../../test/objects.ts";
import { addresses, cluster, http } from "../../test/support/cluster-objects.ts";

describe("EndpointSlices", () => {
  it("04/14 FQDN slices change nothing; slices without a Service name only leave a Problem", () => {
    const followed = cluster(["Service", service()]);
    followed.take();
    expect(followed.upsert("EndpointSlice", slice([endpoint("10.0.1.1")], { addressType: "FQDN" }))).toBe(
      false,
    );
    followed.upsert("EndpointSlice", slice([endpoint("10.0.1.1")], { metadata: { labels: {} } }));
    const snapshot = followed.take();
    expect(snapshot.ipv4.changed.size).toBe(0);
    expect(snapshot.problems).toMatchObject([{ kind: "missing-field", object: "EndpointSlice shop/web-1" }]);
  });

  it("a headless slice is unknown", () => {
    const labels = { "kubernetes.io/service-name": "web", "service.kubernetes.io/headless": "" };
    const followed = cluster(["Service", service()]);
    followed.take();
    expect(followed.upsert("EndpointSlice", slice([endpoint("10.0.1.1")], { metadata: { labels } }))).toBe(
      false,
    );
  });

  it("04/15 the same slice again is no change; another order is one, though not for any ServicePort", () => {
    const [a, b] = [endpoint("10.0.1.1"), endpoint("10.0.1.2")];
    const followed = cluster(["Service", service()], ["EndpointSlice", slice([a, b])]);
    followed.take();
    expect(followed.upsert("EndpointSlice", slice([a, b]))).toBe(false);
    expect(followed.upsert("EndpointSlice", slice([b, a]))).toBe(true);
    expect(followed.take().ipv4.changed.size).toBe(0);
  });

  it("04/16 a slice added and removed before the Snapshot leaves nothing", () => {
    const followed = cluster(["Service", service()]);
    followed.take();
    followed.upsert("EndpointSlice", slice([endpoint("10.0.1.1")]));
    followed.remove("EndpointSlice", "shop", "web-1");
    const snapshot = followed.take();
    expect(snapshot.ipv4.ports.get(http)!.endpoints).toEqual([]);
    expect(snapshot.ipv4.changed.size).toBe(0);
  });

  it("04/17 removing an unknown slice changes nothing", () => {
    const followed = cluster(["Service", service()]);
    followed.take();
    expect(followed.remove("EndpointSlice", "shop", "web-1")).toBe(false);
  });

  it("endpoints wait for their Service", () => {
    const followed = cluster(["EndpointSlice", slice([endpoint("10.0.1.1")])]);
    expect(followed.take().ipv4.ports.size).toBe(0);
    followed.upsert("Service", service());
    expect(addresses(followed.take())).toEqual(["10.0.1.1:8080"]);
  });

  it("a slice can move to another Service", () => {
    const followed = cluster(
      ["Service", service()],
      ["Service", service({}, { metadata: { name: "other" } })],
      ["EndpointSlice", slice([endpoint("10.0.1.1")])],
    );
    followed.take();
    followed.upsert(
      "EndpointSlice",
      slice([endpoint("10.0.1.1")], { metadata: { labels: { "kubernetes.io/service-name": "other" } } }),
    );
    const snapshot = followed.take();
    expect(addresses(snapshot)).toEqual([]);
    expect(addresses(snapshot, "shop/other/tcp/http")).toEqual(["10.0.1.1:8080"]);
    expect(snapshot.ipv4.changed.size).toBe(2);
  });

  it("04/22 of one address and port the running entry counts, whatever the order", () => {
    const running = endpoint("10.0.1.1");
    const leaving = endpoint("10.0.1.1", { conditions: { ready: false, serving: true, terminating: true } });
    const name = (n: string) => ({ metadata: { name: n } });
    for (const [one, two, three] of [
      [leaving, running, leaving],
      [running, leaving, leaving],
      [leaving, leaving, running],
    ] as const) {
      for (const order of [
        [0, 1, 2],
        [2, 1, 0],
      ]) {
        const slices = [
          slice([one], name("web-1")),
          slice([two], name("web-2")),
          slice([three], name("web-3")),
        ];
        const followed = cluster(["Service", service()]);
        for (const i of order) followed.upsert("EndpointSlice", slices[i]);
        expect(followed.take().ipv4.ports.get(http)!.endpoints).toMatchObject([{ state: "ready" }]);
      }
      expect(
        cluster(["Service", service()], ["EndpointSlice", slice([one, two, three])])
          .take()
          .ipv4.ports.get(http)!.endpoints,
      ).toMatchObject([{ state: "ready" }]);
    }
  });

  it("of two slices that claim one running endpoint the one with the last name counts, whatever arrives first", () => {
    const first = slice([endpoint("10.0.1.1", { nodeName: "node-a" })], { metadata: { name: "web-1" } });
    const last = slice([endpoint("10.0.1.1", { nodeName: "node-b" })], { metadata: { name: "web-2" } });
    for (const slices of [
      [first, last],
      [last, first],
    ]) {
      const followed = cluster(["Service", service()], ...slices.map((s) => ["EndpointSlice", s] as const));
      expect(followed.take().ipv4.ports.get(http)!.endpoints).toMatchObject([{ nodeName: "node-b" }]);
    }
  });

  it("04/23 one port name may have different numbers in different slices", () => {
    const followed = cluster(
      ["Service", service()],
      [
        "EndpointSlice",
        slice([endpoint("10.0.1.1")], { ports: [{ name: "http", protocol: "TCP", port: 80 }] }),
      ],
      ["EndpointSlice", slice([endpoint("10.0.1.1")], { metadata: { name: "web-2" } })],
    );
    expect(addresses(followed.take())).toEqual(["10.0.1.1:80", "10.0.1.1:8080"]);
  });

  it("04/24 Endpoints are sorted bytewise by address and port", () => {
    const ports = [{ name: "http", protocol: "TCP", port: 80 }];
    const pods = ["10.0.1.1", "10.0.1.2", "10.0.1.10"].map((address) => endpoint(address));
    const followed = cluster(["Service", service()], ["EndpointSlice", slice(pods, { ports })]);
    expect(addresses(followed.take())).toEqual(["10.0.1.10:80", "10.0.1.1:80", "10.0.1.2:80"]);
  });

  it("04/25 ports of different protocols are not joined", () => {
    const ports = [{ name: "http", protocol: "UDP", port: 8080 }];
    const followed = cluster(
      ["Service", service()],
      ["EndpointSlice", slice([endpoint("10.0.1.1")], { ports })],
    );
    expect(addresses(followed.take())).toEqual([]);
  });

  it("04/44 UDP and TCP ports of one name are different ServicePorts with their own Endpoints", () => {
    const both = (port: number) => [
      { name: "dns", protocol: "UDP", port },
      { name: "dns", protocol: "TCP", port },
    ];
    const followed = cluster(
      ["Service", service({ ports: both(53) })],
      ["EndpointSlice", slice([endpoint("10.0.1.1")], { ports: [both(5353)[0]] })],
      [
        "EndpointSlice",
        slice([endpoint("10.0.1.2")], { ports: [both(5353)[1]], metadata: { name: "web-2" } }),
      ],
    );
    const snapshot = followed.take();
    expect(addresses(snapshot, "shop/web/udp/dns")).toEqual(["10.0.1.1:5353"]);
    expect(addresses(snapshot, "shop/web/tcp/dns")).toEqual(["10.0.1.2:5353"]);
  });
});
