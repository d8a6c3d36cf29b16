// NodePorts on loopback in nftables mode, served or refused by the daemon as users run it.
import { execFile } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type Family, families } from "../../src/model/address.ts";
import { inFamily, places } from "../places.ts";
import { readScenario } from "../scenarios.ts";
import { daemonAmongPods } from "./among-pods.ts";
import { resultOf, send } from "./probe.ts";
import { type Daemon, eventually, type Site, sampleOf } from "./site.ts";

const gate = { featureGates: { KubeProxyNFTablesLocalhostNodePorts: true } };
const served = { ...gate, nodePortAddresses: ["primary", "localhost"] };

describe("NodePorts on loopback", () => {
  const node = daemonAmongPods(readScenario("localhost-served").objects);
  const started = (config: object) => node.started({ mode: "nftables", ...config });

  /** One packet of each protocol, in one family; and how many were refused of each since the start. */
  async function knock(daemon: Daemon, family: Family): Promise<Record<string, number>> {
    const from = { kind: "node" as const, address: inFamily("127.0.0.1", family) };
    for (const protocol of ["tcp", "udp", "sctp"] as const) {
      const to = { address: inFamily("127.0.0.1", family), port: 30_061, protocol };
      await resultOf(node.world, { from, to });
    }
    const text = await daemon.metrics();
    const count = (protocol: string) =>
      sampleOf(
        text,
        `kubeproxy_nftables_localhost_nodeport_rejected_packets_total{ip_family="${family === "ipv4" ? "IPv4" : "IPv6"}",protocol="${protocol.toUpperCase()}"}`,
      );
    return Object.fromEntries(
      ["tcp", "udp", "sctp"].map((protocol) => [protocol, Math.sign(count(protocol))]),
    );
  }

  it("21/25 are refused and counted in every protocol unless loopback is listed", async () => {
    const daemon = await started(gate);
    for (const family of families) {
      expect(await knock(daemon, family)).toEqual({ tcp: 1, udp: 1, sctp: 1 });
    }
  });

  it("21/25 where they are served only SCTP is refused and counted: UDP has a listener of ours as well", async () => {
    const daemon = await started(served);
    for (const family of families) {
      expect(await knock(daemon, family)).toEqual({ tcp: 0, udp: 0, sctp: 1 });
    }
  });

  it("21/29 a backend that never responds delays its clients by 5 s, and others not at all", async () => {
    for (const object of blackHole) node.site.api.put(object);
    node.world.node.run("iptables", "-A", "OUTPUT", "-d", "10.180.0.77", "-j", "DROP");
    await started(served);
    const listing = () => node.site.netns.run("ss", "-Htln");
    await eventually(() => listing().includes("127.0.0.1:30099"), "the listener");
    const start = Date.now();
    const hopeless = untilClosed(node.site, 30_099).then(() => Date.now() - start);
    const probe = {
      from: { kind: "node" as const, address: "127.0.0.1" },
      to: { address: "127.0.0.1", port: 30_061, protocol: "tcp" as const },
    };
    const before = Date.now();
    const seen = await send(node.world, probe, 20);
    expect(new Set(seen)).toEqual(new Set([places.L1, places.R1].map((pod) => `${pod}:8080 masquerade`)));
    expect(Date.now() - before).toBeLessThan(4000);
    const waited = await hopeless;
    expect(waited).toBeGreaterThan(4500);
    expect(waited).toBeLessThan(15_000);
  });
});

/** A Service whose only endpoint is an address that lets nothing through. */
const blackHole = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "hole", namespace: "black" },
    spec: {
      type: "NodePort",
      clusterIP: "172.30.0.99",
      clusterIPs: ["172.30.0.99"],
      ipFamilies: ["IPv4"],
      ports: [{ port: 80, protocol: "TCP", nodePort: 30_099 }],
    },
  },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "hole-1", namespace: "black", labels: { "kubernetes.io/service-name": "hole" } },
    addressType: "IPv4",
    ports: [{ name: "", port: 8080, protocol: "TCP" }],
    endpoints: [{ addresses: ["10.180.0.77"], nodeName: "node-a", conditions: { ready: true } }],
  },
];

/** Connects on loopback and waits until the other side ends the connection. */
function untilClosed({ netns }: Site, port: number): Promise<void> {
  const line = ["netns", "exec", netns.name, "bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/${port}; cat <&3`];
  return new Promise((resolve) => execFile("ip", line, { timeout: 20_000 }, () => resolve()));
}
