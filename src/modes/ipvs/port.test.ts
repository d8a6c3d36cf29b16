// The virtual servers and addresses of a ServicePort, compared with those of kube-proxy v1.37.
import { describe, expect, it } from "vitest";
import { both, elsewhere, here, lines, planOf, serverLines } from "../../../test/support/ipvs-plans.ts";
import { endpoint, ipv4Settings, ipv6Settings, servicePort } from "../../../test/support/routed.ts";
import type { FamilySettings } from "../../config/resolve/settings.ts";
import type { ServicePort } from "../../model/snapshot.ts";

describe("virtual servers of ipvs mode", () => {
  it("20/12 exist for every Frontend: cluster IP, external IP, load balancer, each node address", () => {
    const settings = { ...ipv4Settings, localAddresses: ["10.200.0.1", "127.0.0.1", "192.168.0.2"] };
    const port = servicePort("shop/web", {
      externalIPs: ["192.168.99.5"],
      loadBalancerIPs: ["198.51.100.7"],
      nodePort: 30080,
      endpoints: [here],
    });
    const places = [
      "10.200.0.1:30080",
      "172.30.0.10:80",
      "192.168.0.2:30080",
      "192.168.99.5:80",
      "198.51.100.7:80",
    ];
    expect(serverLines([port], settings)).toEqual(
      places.flatMap((place) => [`-A -t ${place} -s rr`, `-a -t ${place} -r 10.180.0.1:8080 -m -w 1`]),
    );
  });

  it("20/12 have the family, protocol and port of their Frontend", () => {
    const six = servicePort("shop/six", {
      family: "ipv6",
      clusterIP: "fd00:30::a",
      endpoints: [endpoint("[fd00:180::1]:80")],
    });
    expect(serverLines([six], ipv6Settings)).toEqual([
      "-A -t [fd00:30::a]:80 -s rr",
      "-a -t [fd00:30::a]:80 -r [fd00:180::1]:80 -m -w 1",
    ]);
    expect(serverLines([servicePort("shop/u", { protocol: "udp", port: 53 })])).toEqual([
      "-A -u 172.30.0.10:53 -s rr",
    ]);
    expect(serverLines([servicePort("shop/s", { protocol: "sctp" })])).toEqual([
      "-A --sctp-service 172.30.0.10:80 -s rr",
    ]);
  });

  it("20/13 are persistent for the timeout of the affinity", () => {
    const sticky = servicePort("shop/web", { affinity: { seconds: 10800 } });
    expect(serverLines([sticky])).toEqual(["-A -t 172.30.0.10:80 -s rr -p 10800"]);
    expect(planOf([sticky]).servers.get("172.30.0.10:80/TCP")![0]!.server).toMatchObject({
      flags: 1,
      timeoutSeconds: 10800,
    });
  });

  it("20/14 hash the source port with scheduler mh, and not with sh", () => {
    const plain = servicePort("shop/web");
    expect(serverLines([plain], ipv4Settings, { scheduler: "mh" })).toEqual([
      "-A -t 172.30.0.10:80 -s mh -b mh-port",
    ]);
    expect(serverLines([plain], ipv4Settings, { scheduler: "sh" })).toEqual(["-A -t 172.30.0.10:80 -s sh"]);
    const sticky = { ...plain, affinity: { seconds: 5 } };
    const { server } = planOf([sticky], ipv4Settings, { scheduler: "mh" }).servers.get(
      "172.30.0.10:80/TCP",
    )![0]!;
    expect(server).toMatchObject({ flags: 0x11, timeoutSeconds: 5 });
  });

  it("where a NodePort meets an address that a Service names, the name wins whichever came first", () => {
    const named = servicePort("z/named", { externalIPs: ["192.168.0.2"], port: 30080, endpoints: [here] });
    const byPort = servicePort("a/ported", {
      clusterIP: "172.30.0.11",
      nodePort: 30080,
      endpoints: [elsewhere],
    });
    const holder = (ports: readonly ServicePort[]) =>
      planOf(ports).servers.get("192.168.0.2:30080/TCP")![0]!.owner;
    expect(holder([named, byPort])).toBe("z/named/tcp/");
    expect(holder([byPort, named])).toBe("z/named/tcp/");
    expect(holder([byPort])).toBe("a/ported/tcp/");
  });
});

describe("20/16 endpoints", () => {
  const drainingHere = endpoint("10.180.0.3:8080", { state: "draining" });
  const reachable = { externalIPs: ["192.168.99.5"], loadBalancerIPs: ["198.51.100.7"] };
  const rows: [string, Partial<ServicePort>, string, string[]][] = [
    ["internal Cluster: all", {}, "172.30.0.10:80", ["10.180.0.1:8080", "10.180.1.1:8080"]],
    ["internal Local: those here", { internalPolicy: "local" }, "172.30.0.10:80", ["10.180.0.1:8080"]],
    [
      "internal Local, none here, no other frontend: none",
      { internalPolicy: "local", endpoints: [elsewhere] },
      "172.30.0.10:80",
      [],
    ],
    [
      "internal Local, none here, with a NodePort: those elsewhere",
      { internalPolicy: "local", nodePort: 30080, endpoints: [elsewhere] },
      "172.30.0.10:80",
      ["10.180.1.1:8080"],
    ],
    [
      "external Cluster: all",
      { nodePort: 30080 },
      "192.168.0.2:30080",
      ["10.180.0.1:8080", "10.180.1.1:8080"],
    ],
    [
      "external Local: those here",
      { nodePort: 30080, externalPolicy: "local" },
      "192.168.0.2:30080",
      ["10.180.0.1:8080"],
    ],
    [
      "external Local, none here: those elsewhere",
      { nodePort: 30080, externalPolicy: "local", endpoints: [elsewhere] },
      "192.168.0.2:30080",
      ["10.180.1.1:8080"],
    ],
    ...(["192.168.99.5:80", "198.51.100.7:80"] as const).flatMap((place): typeof rows => [
      [`external Cluster at ${place}: all`, reachable, place, ["10.180.0.1:8080", "10.180.1.1:8080"]],
      [
        `external Local at ${place}: those here`,
        { ...reachable, externalPolicy: "local" },
        place,
        ["10.180.0.1:8080"],
      ],
      [
        `external Local at ${place}, none here: those elsewhere`,
        { ...reachable, externalPolicy: "local", endpoints: [elsewhere] },
        place,
        ["10.180.1.1:8080"],
      ],
    ]),
    ...[{ externalIPs: ["192.168.99.5"] }, { loadBalancerIPs: ["198.51.100.7"] }].map(
      (more): (typeof rows)[0] => [
        `internal Local, none here, with ${Object.keys(more).join()}: those elsewhere`,
        { ...more, internalPolicy: "local", endpoints: [elsewhere] },
        "172.30.0.10:80",
        ["10.180.1.1:8080"],
      ],
    ),
    [
      "internal Cluster, only draining ones: these",
      { endpoints: [drainingHere] },
      "172.30.0.10:80",
      ["10.180.0.3:8080"],
    ],
    [
      "internal Cluster, a ready one elsewhere: not the draining one here",
      { endpoints: [drainingHere, elsewhere] },
      "172.30.0.10:80",
      ["10.180.1.1:8080"],
    ],
    [
      "external Local, only draining ones here: these",
      { nodePort: 30080, externalPolicy: "local", endpoints: [drainingHere, elsewhere] },
      "192.168.0.2:30080",
      ["10.180.0.3:8080"],
    ],
  ];
  it.each(rows)("%s", (_, more, place, expected) => {
    const port = servicePort("shop/web", { endpoints: both, ...more });
    const { server } = planOf([port]).servers.get(`${place}/TCP`)![0]!;
    expect([...server.destinations.keys()]).toEqual(expected);
  });
});

describe("addresses of kube-ipvs0", () => {
  it("20/10 are those of cluster IPs, each once however many ports there are", () => {
    const ports = [servicePort("shop/web:http"), servicePort("shop/web:admin", { port: 81 })];
    expect(lines(planOf(ports), "address add")).toEqual(["address add 172.30.0.10/32 dev kube-ipvs0"]);
    const six = servicePort("shop/six", { family: "ipv6", clusterIP: "fd00:30::a" });
    expect(lines(planOf([six], ipv6Settings), "address add")).toEqual([
      "address add fd00:30::a/128 dev kube-ipvs0",
    ]);
  });

  it("20/11 are not those that another link has, and leave when they move there", () => {
    const port = servicePort("shop/web", {
      externalIPs: ["192.168.99.5"],
      loadBalancerIPs: ["198.51.100.7"],
    });
    const addresses = (localAddresses: string[]) =>
      [...planOf([port], { ...ipv4Settings, localAddresses }).addresses.keys()].sort();
    expect(addresses(["192.168.0.2"])).toEqual(["172.30.0.10", "192.168.99.5", "198.51.100.7"]);
    expect(addresses(["192.168.0.2", "192.168.99.5"])).toEqual(["172.30.0.10", "198.51.100.7"]);
    expect(addresses(["198.51.100.7", "192.168.99.5"])).toEqual(["172.30.0.10"]);
    // They are served there all the same.
    expect(serverLines([port], { ...ipv4Settings, localAddresses: ["192.168.99.5"] })).toContain(
      "-A -t 192.168.99.5:80 -s rr",
    );
  });

  it("20/38 NodePorts answer at every address of the node but loopback and link-local, or inside nodePortAddresses", () => {
    const port = servicePort("shop/web", { nodePort: 30080 });
    const at = (settings: FamilySettings) =>
      serverLines(
        [
          {
            ...port,
            family: settings.family,
            clusterIP: settings.family === "ipv4" ? "172.30.0.10" : "fd30::1",
          },
        ],
        settings,
      )
        .map((line) => line.split(" ")[2]!)
        .filter((place) => place.endsWith(":30080"));
    const localAddresses = ["10.9.0.1", "127.0.0.1", "192.168.0.2"];
    expect(at({ ...ipv4Settings, localAddresses })).toEqual(["10.9.0.1:30080", "192.168.0.2:30080"]);
    const some = { kind: "some", cidrs: ["192.168.0.0/24", "127.0.0.0/8"] } as const;
    expect(at({ ...ipv4Settings, localAddresses, nodePortAddresses: some })).toEqual(["192.168.0.2:30080"]);
    expect(at({ ...ipv6Settings, localAddresses: ["2001:db8::2", "::1", "fe80::1"] })).toEqual([
      "[2001:db8::2]:30080",
    ]);
  });
});
