// Relays as data: what Routes require, and how relays that a daemon has differ from it.
import { describe, expect, it } from "vitest";
import { endpoint, routed, servicePort } from "../../../test/support/routed.ts";
import { noRelays, type OpenRelays, relayDifferences, socketsIn, unserved, wantedRelays } from "./relays.ts";

const web = servicePort("shop/web:http", {
  nodePort: 30080,
  externalIPs: ["192.168.0.2"],
  externalPolicy: "local",
  endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.1.1:8080")],
});
const dns = servicePort("shop/dns", { protocol: "udp", clusterIP: "172.30.0.11" });
const tel = servicePort("shop/tel", { protocol: "sctp", clusterIP: "172.30.0.12" });
const wanted = wantedRelays(routed([web, dns, tel]));

describe("wanted relays", () => {
  it("have a port for each policy, and reserved ports; none for SCTP", () => {
    expect(wanted.ports.map(({ key, doors }) => [key, doors])).toEqual([
      ["shop/dns/udp/", { cluster: 1 }],
      ["shop/web/tcp/http", { cluster: 2, external: 3 }],
    ]);
    expect(wanted.held).toEqual(["192.168.0.2/tcp/80", "node/tcp/30080"]);
    const sockets = socketsIn({ ...wanted, taken: ["node/tcp/30080"] });
    expect(sockets("shop/web/tcp/http").relayPorts.get("external")).toBe(3);
    expect(sockets("shop/web/tcp/http").taken.has("node/tcp/30080")).toBe(true);
    expect(sockets("shop/tel/sctp/").relayPorts.size).toBe(0);
  });
});

it("behaviour/4: a ServicePort with SCTP is a Problem of its Service", () => {
  expect([web, dns].flatMap((port) => unserved({ port }))).toEqual([]);
  expect(unserved({ port: tel })).toEqual([
    {
      kind: "unserved",
      object: "Service shop/tel",
      field: "spec.ports",
      message: "shop/tel is not served: userspace mode has no relays for SCTP; use another mode",
    },
  ]);
});

describe("relays that a daemon has", () => {
  const differs = (have: OpenRelays) => relayDifferences(have, wanted);
  const without = (key: string) => wanted.ports.filter((port) => port.key !== key);
  const served = wanted.ports.find(({ key }) => key === web.key)!;

  it("may listen anywhere and choose in any order", () => {
    const ports = wanted.ports.map((port) => ({
      ...port,
      doors: Object.fromEntries(Object.entries(port.doors).map(([policy, at]) => [policy, at + 40_000])),
      pools: { ...port.pools, cluster: port.pools.cluster.toReversed() },
    }));
    expect(differs({ ...wanted, ports })).toEqual([]);
    expect(differs(JSON.parse(JSON.stringify(wanted)) as OpenRelays)).toEqual([]);
  });

  it("are named where they are missing, superfluous, or lead elsewhere", () => {
    expect(differs(noRelays)).toEqual([
      "missing relay shop/dns/udp/ (cluster)",
      "missing relay shop/web/tcp/http (cluster)",
      "missing relay shop/web/tcp/http (external)",
      "192.168.0.2/tcp/80 is not held",
      "node/tcp/30080 is not held",
    ]);
    const old = { ...served, key: "shop/old/tcp/", doors: { local: 7 } };
    expect(differs({ ...wanted, ports: [...wanted.ports, old] })).toEqual([
      "foreign relay shop/old/tcp/ (local)",
    ]);
    const astray = { ...served, pools: { ...served.pools, local: [] } };
    expect(differs({ ...wanted, ports: [...without(web.key), astray] })).toEqual([
      "relay shop/web/tcp/http (local) leads to no endpoint instead of 10.180.0.1:8080",
    ]);
    const open = { ...served, guard: { ...served.guard, allowed: ["203.0.113.0/24"] } };
    expect(differs({ ...wanted, ports: [...without(web.key), open] })).toEqual([
      "relay shop/web/tcp/http lets other clients in",
    ]);
  });

  it("do not have what another program holds", () => {
    const [held, taken] = [["192.168.0.2/tcp/80"], ["node/tcp/30080"]];
    expect(differs({ ...wanted, held, taken })).toEqual(["another program holds node/tcp/30080"]);
  });
});
