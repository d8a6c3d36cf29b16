import { describe, expect, it } from "vitest";
import { service } from "../../test/objects.ts";
import type { Family } from "../model/address.ts";
import type { ServicePort } from "../model/snapshot.ts";
import { identify } from "./identity.ts";
import { mostPlaces, mostSourceRanges, parseService } from "./service.ts";

type Rest = Parameters<typeof service>[1];

function parse(spec: Record<string, unknown>, rest: Rest = {}) {
  const object = service(spec, rest);
  return parseService(identify("Service", object), object);
}

function port(spec: Record<string, unknown>, family: Family = "ipv4", rest: Rest = {}): ServicePort {
  const first = parse(spec, rest).value?.[family][0];
  if (first === undefined) throw new Error("no port");
  return first;
}

function fieldsOf(spec: Record<string, unknown>, rest: Rest = {}): string[] {
  return parse(spec, rest).problems.map(({ kind, field }) => `${kind} ${field}`);
}

const ingress = (...entries: unknown[]): Rest => ({ status: { loadBalancer: { ingress: entries } } });

describe("families", () => {
  it("04/2 a Service of one family has no ports in the other", () => {
    const six = parse({ clusterIP: "fd00:30::1", clusterIPs: ["fd00:30::1"], ipFamilies: ["IPv6"] }).value!;
    expect([six.ipv4.length, six.ipv6.length]).toEqual([0, 1]);
    const four = parse({ clusterIP: "172.30.0.10", clusterIPs: ["172.30.0.10"], ipFamilies: ["IPv4"] })
      .value!;
    expect([four.ipv4.length, four.ipv6.length]).toEqual([1, 0]);
  });

  it("04/3 the index of the family selects the cluster IP; without families the single field counts", () => {
    const dual = { ipFamilies: ["IPv6", "IPv4"], clusterIP: "2000::1", clusterIPs: ["2000::1", "10.0.0.10"] };
    expect(port(dual, "ipv4").clusterIP).toBe("10.0.0.10");
    expect(port(dual, "ipv6").clusterIP).toBe("2000::1");
    const single = parse({ clusterIP: "10.0.0.10" }).value!;
    expect([single.ipv4[0]?.clusterIP, single.ipv6.length]).toEqual(["10.0.0.10", 0]);
    const short = parse({ clusterIP: "10.0.0.10", clusterIPs: ["10.0.0.10"], ipFamilies: ["IPv4", "IPv6"] })
      .value!;
    expect([short.ipv4.length, short.ipv6.length]).toEqual([1, 0]);
  });

  it("a manifest from a file may have families and the single address alone", () => {
    expect(port({ clusterIP: "172.30.0.10", ipFamilies: ["IPv4"] }).clusterIP).toBe("172.30.0.10");
  });

  it("an invalid cluster IP, or one of another family, results in no ports and a Problem", () => {
    expect(parse({ clusterIP: "nonsense" }).value).toEqual({ ipv4: [], ipv6: [] });
    expect(fieldsOf({ clusterIP: "nonsense" })).toEqual(["invalid-address spec.clusterIP"]);
    const crossed = { clusterIP: "172.30.0.10", clusterIPs: ["fd00::1"], ipFamilies: ["IPv4"] };
    expect(parse(crossed).value!.ipv4).toEqual([]);
    expect(fieldsOf(crossed)).toEqual(["invalid-address spec.clusterIPs[0]"]);
  });

  it("04/4 each family has only its own external IPs, load-balancer addresses and source ranges", () => {
    const spec = {
      ...{
        ipFamilies: ["IPv4", "IPv6"],
        clusterIP: "172.30.0.10",
        clusterIPs: ["172.30.0.10", "fd00:30::1"],
      },
      externalIPs: ["203.0.113.1", "2001:db8::1"],
      loadBalancerSourceRanges: ["203.0.113.0/24", "2001:db8::/32"],
    };
    const status = ingress({ ip: "203.0.113.9" }, { ip: "2001:db8::9" });
    const four = port(spec, "ipv4", status);
    expect([four.externalIPs, four.loadBalancerIPs, four.sourceRanges]).toEqual([
      ["203.0.113.1"],
      ["203.0.113.9"],
      ["203.0.113.0/24"],
    ]);
    const six = port(spec, "ipv6", status);
    expect([six.externalIPs, six.loadBalancerIPs, six.sourceRanges]).toEqual([
      ["2001:db8::1"],
      ["2001:db8::9"],
      ["2001:db8::/32"],
    ]);
  });
});

describe("addresses from outside", () => {
  it("04/5 only ingress addresses without mode, or with mode VIP, are ours", () => {
    const status = ingress(
      { ip: "203.0.113.1" },
      { ip: "203.0.113.2", ipMode: "VIP" },
      { ip: "203.0.113.3", ipMode: "Proxy" },
      { hostname: "lb.example" },
    );
    expect(port({}, "ipv4", status).loadBalancerIPs).toEqual(["203.0.113.1", "203.0.113.2"]);
    expect(fieldsOf({}, status)).toEqual([]);
  });

  it("04/6 source ranges are trimmed; a range of all addresses, or only of the other family, restricts no client", () => {
    const ranges = (...loadBalancerSourceRanges: string[]) => port({ loadBalancerSourceRanges }).sourceRanges;
    expect(ranges(" 10.1.2.0/28")).toEqual(["10.1.2.0/28"]);
    expect(ranges("10.1.2.3/8", "10.9.9.9/8")).toEqual(["10.0.0.0/8"]);
    expect(ranges("10.0.0.0/8", "0.0.0.0/0")).toEqual([]);
    expect(ranges("10.0.0.0/8", "::/0")).toEqual(["10.0.0.0/8"]);
    expect(ranges("fd00::/8")).toEqual([]);
    expect(fieldsOf({ loadBalancerSourceRanges: ["10.0.0.0/8", " ", "10.0.0.0"] })).toEqual([
      "invalid-range spec.loadBalancerSourceRanges[2]",
    ]);
  });

  it("security/2: a Service with too many source ranges admits no client, and a Problem names the field", () => {
    const ranges = Array.from(
      { length: mostSourceRanges + 1 },
      (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}/32`,
    );
    expect(port({ loadBalancerSourceRanges: ranges.slice(1) }).sourceRanges).toHaveLength(mostSourceRanges);
    const { value, problems } = parse({ loadBalancerSourceRanges: ranges });
    expect(value!.ipv4[0]!.sourceRanges).toEqual(["0.0.0.0/32"]);
    expect(problems).toEqual([
      expect.objectContaining({
        kind: "invalid-range",
        field: "spec.loadBalancerSourceRanges",
        message: "has 100001 entries, more than 100000; the load-balancer addresses drop all traffic",
      }),
    ]);
  });

  it("security/3: ports × addresses, and ports × source ranges, are limited: the first addresses are served, no range is", () => {
    const ports = Array.from({ length: 1000 }, (_, i) => ({ name: `p${i}`, port: i + 1 }));
    const most = mostPlaces / ports.length;
    const externalIPs = Array.from({ length: most + 1 }, (_, i) => `198.51.${i >> 8}.${i & 255}`);
    const loadBalancerSourceRanges = externalIPs.map((address) => `${address}/32`);
    const { value, problems } = parse({ ports, externalIPs, loadBalancerSourceRanges });
    for (const port of value!.ipv4) {
      expect(port.externalIPs).toEqual(externalIPs.slice(0, most));
      expect(port.sourceRanges).toEqual(["0.0.0.0/32"]);
    }
    expect(problems.map(({ field, message }) => `${field} ${message}`)).toEqual([
      `spec.externalIPs has more than ${most} addresses of a family, for 1000 ports; only the first ${most} are served`,
      `spec.loadBalancerSourceRanges has ${most + 1} entries, more than ${most}; the load-balancer addresses drop all traffic`,
    ]);
    expect(parse({ ports, externalIPs: externalIPs.slice(1) }).problems).toEqual([]);
  });

  it("04/9 external IPs stay in the Snapshot; whether they may be used is decided in routing", () => {
    const spec = { externalIPs: ["203.0.113.1"], internalTrafficPolicy: "Local" };
    expect(port(spec)).toMatchObject({ externalIPs: ["203.0.113.1"], internalPolicy: "local" });
  });

  it("04/41 leading zeros are decimal, blanks are not trimmed; empty items go silently", () => {
    const spec = { externalIPs: ["010.0.0.1", " 10.0.0.1", "", "10.0.0.1", "x"] };
    expect(port(spec).externalIPs).toEqual(["10.0.0.1"]);
    expect(fieldsOf(spec)).toEqual([
      "invalid-address spec.externalIPs[1]",
      "invalid-address spec.externalIPs[4]",
    ]);
  });

  it("04/42 an IPv4-mapped address is IPv4", () => {
    expect(port({}, "ipv4", ingress({ ip: "::ffff:1.2.3.4" })).loadBalancerIPs).toEqual(["1.2.3.4"]);
  });
});

describe("policies", () => {
  it("04/7 external policy Local counts only where traffic can come from outside", () => {
    const policy = (spec: object) => port({ externalTrafficPolicy: "Local", ...spec }).externalPolicy;
    expect(policy({ type: "ClusterIP" })).toBe("cluster");
    expect(policy({ type: "ClusterIP", externalIPs: [] })).toBe("cluster");
    expect(policy({ type: "ClusterIP", externalIPs: ["2001:db8::1"] })).toBe("local");
    expect(policy({ type: undefined, externalIPs: ["2001:db8::1"] })).toBe("local");
    expect(policy({ type: "NodePort" })).toBe("local");
    expect(policy({ type: "LoadBalancer", healthCheckNodePort: 345 })).toBe("local");
    expect(policy({ type: "NodePort", externalTrafficPolicy: "Cluster" })).toBe("cluster");
  });

  it("04/8 a health check port belongs to load balancers with policy Local; there it must not be missing", () => {
    const local = { externalTrafficPolicy: "Local", healthCheckNodePort: 345 };
    expect(port({ ...local, type: "LoadBalancer" }).healthCheckNodePort).toBe(345);
    expect(port({ ...local, type: "NodePort" }).healthCheckNodePort).toBe(0);
    expect(
      port({ ...local, type: "LoadBalancer", externalTrafficPolicy: "Cluster" }).healthCheckNodePort,
    ).toBe(0);
    const missing = { ...local, type: "LoadBalancer", healthCheckNodePort: 0 };
    expect(port(missing).healthCheckNodePort).toBe(0);
    expect(fieldsOf(missing)).toEqual(["missing-field spec.healthCheckNodePort"]);
  });

  it("affinity has a timeout even when the manifest has none", () => {
    const affinity = (spec: object) => port({ sessionAffinity: "ClientIP", ...spec }).affinity;
    expect(affinity({})).toEqual({ seconds: 10800 });
    expect(affinity({ sessionAffinityConfig: {} })).toEqual({ seconds: 10800 });
    expect(affinity({ sessionAffinityConfig: { clientIP: null } })).toEqual({ seconds: 10800 });
    expect(affinity({ sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } })).toEqual({
      seconds: 60,
    });
    const longest = { sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_400 } } };
    expect(affinity(longest)).toEqual({ seconds: 86_400 });
    const longer = { sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } };
    expect(affinity(longer)).toEqual({ seconds: 10_800 });
    expect(affinity({ sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } })).toEqual({
      seconds: 10800,
    });
    expect(port({ sessionAffinity: "None" }).affinity).toBeNull();
  });
});

describe("ports", () => {
  it("the default protocol is TCP; protocols other than TCP, UDP, SCTP are dropped", () => {
    const ports = ["TCP", undefined, "UDP", "SCTP", "ICMP", "tcp", "__proto__"].map((protocol, i) => ({
      name: `p${i}`,
      protocol,
      port: 80,
    }));
    expect(parse({ ports }).value!.ipv4.map(({ protocol }) => protocol)).toEqual([
      "tcp",
      "tcp",
      "udp",
      "sctp",
    ]);
    expect(fieldsOf({ ports })).toEqual([4, 5, 6].map((i) => `invalid-protocol spec.ports[${i}].protocol`));
  });

  it("numbers out of range are dropped, a node port alone", () => {
    const ports = [0, 65536, -1, undefined, 65535].map((number, i) => ({ name: `p${i}`, port: number }));
    expect(parse({ ports }).value!.ipv4.map(({ portName }) => portName)).toEqual(["p4"]);
    expect(fieldsOf({ ports })).toHaveLength(4);
    expect(port({ ports: [{ port: 80, nodePort: 70000 }] })).toMatchObject({ port: 80, nodePort: 0 });
    expect(port({ ports: [{ port: 80, nodePort: 30080 }], type: "ClusterIP" }).nodePort).toBe(30080);
  });

  it("of two with the same name and protocol the last counts", () => {
    const ports = [
      { name: "a", port: 80 },
      { name: "a", port: 81, protocol: "UDP" },
      { name: "a", port: 82 },
    ];
    const parsed = parse({ ports }).value!.ipv4.map(({ key, port }) => `${key} ${port}`);
    expect(parsed).toEqual(["shop/web/tcp/a 82", "shop/web/udp/a 81"]);
    expect(fieldsOf({ ports })).toEqual(["conflict spec.ports[2]"]);
  });

  it("a thousand of them are just many", () => {
    const ports = Array.from({ length: 1000 }, (_, i) => ({ name: `p-${i}`, port: i + 1 }));
    expect(parse({ ports }).value!.ipv4).toHaveLength(1000);
  });
});

describe("bad objects", () => {
  it("a field of the wrong type refuses the whole Service, rather than opening what it meant to restrict", () => {
    for (const [spec, field] of [
      [{ loadBalancerSourceRanges: "10.0.0.0/8" }, "spec.loadBalancerSourceRanges"],
      [{ loadBalancerSourceRanges: [10] }, "spec.loadBalancerSourceRanges[0]"],
      [{ ports: [{ port: "80" }] }, "spec.ports[0].port"],
      [{ ports: [{ port: 80.5 }] }, "spec.ports[0].port"],
      [{ ports: [{ port: 2 ** 40 }] }, "spec.ports[0].port"],
      [{ ports: { port: 80 } }, "spec.ports"],
      [{ clusterIP: ["172.30.0.10"] }, "spec.clusterIP"],
      [{ externalIPs: [{}] }, "spec.externalIPs[0]"],
    ] as const) {
      expect(parse(spec).value).toBeNull();
      expect(fieldsOf(spec)).toEqual([`wrong-type ${field}`]);
    }
  });

  it("null is the same as absent", () => {
    const nothing = { externalIPs: null, loadBalancerSourceRanges: null, sessionAffinity: null, type: null };
    expect(parse(nothing)).toEqual(parse({ type: undefined }));
  });

  it("names that Kubernetes does not allow are refused, and cannot break a line", () => {
    for (const name of ["a b", "a\nb", 'a"', "a/b", "-a", "\u001b[31m", "x".repeat(254)]) {
      const { value, problems } = parse({}, { metadata: { name } });
      expect(value).toBeNull();
      expect(problems).toMatchObject([{ kind: "invalid-name", field: "metadata.name" }]);
      expect(problems[0]!.object).not.toMatch(/\p{Cc}/u);
    }
    expect(parse({}, { metadata: { name: "a.B_c-9" } }).value).not.toBeNull();
  });

  it("lists no more than twenty Problems of one object", () => {
    const externalIPs = Array.from({ length: 1000 }, () => "x");
    const { problems } = parse({ externalIPs });
    expect(problems).toHaveLength(21);
    expect(problems.at(-1)!.message).toBe("has 980 more problems that are not listed");
    const refused = parse({ externalIPs, ports: 7 });
    expect(refused.problems).toMatchObject([{ kind: "wrong-type", field: "spec.ports" }]);
  });
});
