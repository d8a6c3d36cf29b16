// Services in a cluster with a real API server and real controllers: what upstream's end-to-end tests require.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { observe } from "../differential/observe.ts";
import { ourProgram, reasonNotToRun } from "../differential/program.ts";
import { reasonToSkip } from "../kernel/netns.ts";
import { inFamily, places } from "../places.ts";
import type { Mode } from "../reference/proxy.ts";
import { type Cluster, createCluster } from "./cluster.ts";
import { bindRole, createAccount, type Daemon, startDaemon } from "./daemon.ts";
import { type Corner, clusterTarget, createCorner, nodePortTarget } from "./objects.ts";

const assets = findAssets("etcd", "kube-apiserver", "kube-controller-manager");
const reason = reasonToSkip() ?? (assets.found ? reasonNotToRun(ourProgram) : assets.reason);
const modes = (process.env.TURNOUT_MODES ?? "nftables,iptables").split(",") as Mode[];

describe("in a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    if (reason !== null || !assets.found) return;
    cluster = await createCluster(assets.paths);
    await createAccount(cluster);
    await bindRole(cluster);
  });
  afterAll(() => cluster?.close());

  describe.each(modes)("%s", (mode) => {
    let daemon: Daemon;
    let corner: Corner;
    beforeAll(() => {
      if (reason === null) daemon = startDaemon(cluster, ourProgram, mode);
    });
    afterAll(() => daemon?.stop());
    beforeEach(async ({ skip }) => {
      if (reason !== null) skip(reason);
      corner = await createCorner(cluster);
    });
    afterEach(async () => {
      await corner?.clear();
      if (!daemon.alive()) throw new Error(`The daemon has ended:\n${daemon.log().slice(-3000)}`);
    });

    const rejected = "icmp 3/3";
    /** Seconds: after several failures a client waits for up to a minute before it tries again. */
    const backoff = 120;

    it("a1 a2 a3 serves pods, which see the source pod's address", async () => {
      await corner.pod("L1");
      await corner.pod("R1");
      const to = clusterTarget(await corner.service({}));
      await cluster.meets("L2", to, "L1:8080 kept", "R1:8080 kept");
      await corner.end("R1");
      await cluster.meets("L2", to, "L1:8080 kept");
    });

    it("a1 serves several ports", async () => {
      await corner.pod("L1");
      const ports = [
        { name: "one", port: 80, targetPort: 8080 },
        { name: "two", port: 81, targetPort: 8081 },
      ];
      const service = await corner.service({ ports });
      await cluster.meets("L2", clusterTarget(service, 80), "L1:8080 kept");
      await cluster.meets("L2", clusterTarget(service, 81), "L1:8081 kept");
    });

    it("a4 serves the node, and a7 endpoints on the host network", async () => {
      await corner.pod("R1");
      const to = clusterTarget(await corner.service({}));
      await cluster.meets("host", to, "R1:8080 masqueraded");
      await corner.pod("host");
      await corner.end("R1");
      await cluster.meets("L2", to, "host:8080 kept");
    });

    it("a5 a6 lets a pod reach itself", async () => {
      await corner.pod("L1");
      const to = clusterTarget(await corner.service({}));
      await cluster.meets("L1", to, "L1:8080 masqueraded");
    });

    it("a8 a9 a10 rejects while no endpoint is ready", async () => {
      const to = clusterTarget(await corner.service({}));
      await cluster.meets("L2", to, rejected);
      await corner.pod("L1", { ready: false });
      await cluster.meets("L2", to, rejected);
      await corner.setReady("L1", true);
      await cluster.meets("L2", to, "L1:8080 kept");
      await corner.setReady("L1", false);
      await cluster.meets("L2", to, rejected);
    });

    it("a11 falls back to terminating endpoints", async () => {
      await corner.pod("L1");
      await corner.pod("R1");
      const to = clusterTarget(await corner.service({}));
      await cluster.meets("L2", to, "L1:8080 kept", "R1:8080 kept");
      await corner.terminate("R1");
      await cluster.meets("L2", to, "L1:8080 kept");
      await corner.terminate("L1");
      await cluster.meets("L2", to, "L1:8080 kept", "R1:8080 kept");
      await corner.end("L1");
      await corner.end("R1");
      await cluster.meets("L2", to, rejected);
    });

    it("a12 uses unready endpoints that are published", async () => {
      await corner.pod("L1", { ready: false });
      const to = clusterTarget(await corner.service({ publishNotReadyAddresses: true }));
      await cluster.meets("L2", to, "L1:8080 kept");
    });

    it("a13 a14 keeps protocols with the same port number apart", async () => {
      await corner.pod("L1");
      const ports = [
        { name: "tcp", port: 80, targetPort: 8080, protocol: "TCP" },
        { name: "udp", port: 80, targetPort: 8081, protocol: "UDP" },
        { name: "sctp", port: 80, targetPort: 8082, protocol: "SCTP" },
      ];
      const to = clusterTarget(await corner.service({ ports }));
      await cluster.meets("L2", to, "L1:8080 kept");
      await cluster.meets("L2", { ...to, protocol: "udp" }, "L1:8081 kept");
      await cluster.meets("L2", { ...to, protocol: "sctp" }, "L1:8082 kept");
    });

    it("a16 resolves a named target port for each pod", async () => {
      await corner.pod("L1", { ports: [{ name: "web", containerPort: 8080 }] });
      await corner.pod("R1", { ports: [{ name: "web", containerPort: 8081 }] });
      const to = clusterTarget(await corner.service({ ports: [{ port: 80, targetPort: "web" }] }));
      await cluster.meets("L2", to, "L1:8080 kept", "R1:8081 kept");
    });

    it("b1 b2 b3 stays on the node with internalTrafficPolicy Local", async () => {
      await corner.pod("L1");
      await corner.pod("R1");
      const to = clusterTarget(await corner.service({ internalTrafficPolicy: "Local" }));
      await cluster.meets("L2", to, "L1:8080 kept");
      await cluster.meets("host", to, "L1:8080 masqueraded");
      await corner.terminate("L1");
      await cluster.meets("L2", to, "L1:8080 kept");
      await corner.end("L1");
      await cluster.meets("L2", to, "silence");
    });

    it("c1 c2 opens, moves and closes node ports as the type changes", async () => {
      await corner.pod("L1");
      const created = await corner.service({ type: "NodePort" });
      const to = nodePortTarget(created);
      await cluster.meets("X", to, "L1:8080 masqueraded");
      await cluster.meets("L2", to, "L1:8080 masqueraded");
      await cluster.meets("RN", to, "L1:8080 masqueraded");
      const moved = await corner.change({ ports: [{ port: 80, targetPort: 8080, nodePort: 31999 }] });
      await cluster.meets("X", nodePortTarget(moved), "L1:8080 masqueraded");
      await cluster.meets("X", to, "ECONNREFUSED");
      await corner.change({ type: "ClusterIP" });
      await cluster.meets("X", nodePortTarget(moved), "ECONNREFUSED");
      await cluster.meets("L2", clusterTarget(created), "L1:8080 kept");
    });

    it("changes from and to ExternalName", async () => {
      await corner.pod("L1");
      await corner.service({ type: "ExternalName", externalName: "example.net", ports: [], selector: null });
      const service = await corner.change({
        type: "ClusterIP",
        externalName: null,
        selector: { app: "web" },
        ports: [{ port: 80, targetPort: 8080 }],
      });
      await cluster.meets("L2", clusterTarget(service), "L1:8080 kept");
      await corner.change({
        type: "ExternalName",
        externalName: "example.net",
        clusterIP: null,
        clusterIPs: null,
      });
      const gone = mode === "nftables" ? "silence" : "icmp 3/1";
      await cluster.meets("L2", clusterTarget(service), gone);
    });

    it("d1 d2 d3 keeps outside traffic local with externalTrafficPolicy Local", async () => {
      await corner.pod("L1");
      await corner.pod("R1");
      const to = nodePortTarget(await corner.service({ type: "NodePort", externalTrafficPolicy: "Local" }));
      await cluster.meets("X", to, "L1:8080 kept");
      await cluster.meets("L2", to, "L1:8080 kept", "R1:8080 kept");
      await corner.terminate("L1");
      await cluster.meets("X", to, "L1:8080 kept");
      await corner.end("L1");
      await cluster.meets("X", to, "silence");
      await corner.change({ externalTrafficPolicy: "Cluster" });
      await cluster.meets("X", to, "R1:8080 masqueraded");
    });

    it("f1 answers on external IPs that no node has", async () => {
      await corner.pod("L1");
      await corner.service({ externalIPs: ["192.168.99.77"] });
      await cluster.meets("X", { address: "192.168.99.77", port: 80 }, "L1:8080 masqueraded");
    });

    it("g1 g6 balances load-balancer addresses within their source ranges", async () => {
      await corner.pod("L1");
      await corner.service({ type: "LoadBalancer" });
      await corner.setIngress("198.51.100.77");
      const to = { address: "198.51.100.77", port: 80 };
      await cluster.meets("X", to, "L1:8080 masqueraded");
      await corner.change({ loadBalancerSourceRanges: ["198.18.0.0/15"] });
      await cluster.meets("X", to, "silence");
      await corner.change({ loadBalancerSourceRanges: [`${places.X}/32`] });
      await cluster.meets("X", to, "L1:8080 masqueraded");
    });

    it("h1 h6 keeps a client on one endpoint while affinity is on", async () => {
      await corner.pod("L1");
      await corner.pod("R1");
      await corner.pod("R2");
      const to = clusterTarget(await corner.service({}));
      await cluster.meets("L2", to, "L1:8080 kept", "R1:8080 kept", "R2:8080 kept");
      await corner.change({ sessionAffinity: "ClientIP" });
      await expect.poll(() => distinct(to), { timeout: 20_000 }).toBe(1);
      await corner.change({ sessionAffinity: "None" });
      await cluster.meets("L2", to, "L1:8080 kept", "R1:8080 kept", "R2:8080 kept");
    });

    it("k1 prefers endpoints of its own zone", async () => {
      await corner.pod("L1");
      await corner.pod("R1");
      const to = clusterTarget(await corner.service({ trafficDistribution: "PreferSameZone" }));
      await cluster.meets("L2", to, "L1:8080 kept");
      await corner.end("L1");
      await cluster.meets("L2", to, "R1:8080 kept");
    });

    it("m1 serves both families of a dual-stack Service", async () => {
      await corner.pod("L1");
      const service = await corner.service({ ipFamilyPolicy: "RequireDualStack" });
      await cluster.meets("L2", clusterTarget(service, 80, 0), "L1:8080 kept");
      await cluster.meets("L2", clusterTarget(service, 80, 1), "L1:8080 kept");
      await corner.end("L1");
      await cluster.meets("L2", clusterTarget(service, 80, 1), "icmp 1/4");
    });

    it("m1 serves an IPv6 Service on its node port", async () => {
      await corner.pod("R1");
      const service = await corner.service({ type: "NodePort", ipFamilies: ["IPv6"] });
      const { port } = nodePortTarget(service);
      await cluster.meets("X", { address: inFamily(places.host, "ipv6"), port }, "R1:8080 masqueraded");
      await cluster.meets("X", { address: places.host, port }, "ECONNREFUSED");
    });

    it("r1 leaves Services of other proxies alone", async () => {
      await corner.pod("L1");
      const service = await corner.service({});
      const path = `${corner.path}/services/web`;
      const label = (value: string | null) =>
        cluster.patch(path, { metadata: { labels: { "service.kubernetes.io/service-proxy-name": value } } });
      await cluster.meets("L2", clusterTarget(service), "L1:8080 kept");
      await label("other");
      await cluster.meets("L2", clusterTarget(service), mode === "nftables" ? "silence" : "icmp 3/1");
      await label(null);
      await cluster.meets("L2", clusterTarget(service), "L1:8080 kept");
    });

    describe("through faults", { timeout: 500_000 }, () => {
      beforeEach(({ skip }) => {
        if (process.env.TURNOUT_LONG === undefined) skip("takes minutes; run with: npm run test:cluster");
      });

      it("follows the cluster through restarts of the API server", async () => {
        await corner.pod("L1");
        const to = clusterTarget(await corner.service({}));
        await cluster.meets("L2", to, "L1:8080 kept");
        await cluster.plane.restartApiServer(2000);
        await cluster.meets("L2", to, "L1:8080 kept");
        await corner.pod("R1");
        await cluster.meetsWithin(backoff, "L2", to, "L1:8080 kept", "R1:8080 kept");
      });

      it("follows the cluster after the history was compacted", async () => {
        await corner.pod("L1");
        const to = clusterTarget(await corner.service({}));
        await cluster.meetsWithin(backoff, "L2", to, "L1:8080 kept");
        await cluster.plane.restartApiServer(0);
        cluster.plane.compact();
        await corner.pod("R1");
        await corner.end("L1");
        await cluster.meetsWithin(backoff, "L2", to, "R1:8080 kept");
      });

      it("takes up a rotated token after its old one was revoked", async () => {
        const to = clusterTarget(await corner.service({}));
        await cluster.meetsWithin(backoff, "L2", to, rejected);
        await createAccount(cluster);
        await cluster.plane.restartApiServer(0);
        await corner.pod("L1");
        await cluster.meetsWithin(backoff, "L2", to, "L1:8080 kept");
      });

      it("follows a thousand Services that come and go", async () => {
        await corner.pod("L1");
        const names = Array.from({ length: 1000 }, (_, i) => `many-${i}`);
        const made = await inBatches(names, (name) =>
          cluster.create(`${corner.path}/services`, {
            metadata: { name },
            spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }] },
          }),
        );
        for (const service of [made[0], made[500], made[999]])
          await cluster.meetsWithin(backoff, "L2", clusterTarget(service), "L1:8080 kept");
        await inBatches(names.slice(1), (name) => cluster.remove(`${corner.path}/services/${name}`));
        const gone = mode === "nftables" ? "silence" : "icmp 3/1";
        await cluster.meetsWithin(backoff, "L2", clusterTarget(made[999]), gone);
        await cluster.meets("L2", clusterTarget(made[0]), "L1:8080 kept");
      });
    });

    async function distinct(to: { address: string; port: number }): Promise<number> {
      const met = new Set<string>();
      const from = { place: "L2", source: null } as const;
      const cell = { from, to, protocol: "tcp", service: "", kind: "cluster IP", sticky: false } as const;
      await observe(cluster.world, cell, 12, met);
      return met.size;
    }
  });
});

/** Fifty at a time: more concurrent connections from one client are unusual for an API server. */
async function inBatches<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let i = 0; i < items.length; i += 50)
    results.push(...(await Promise.all(items.slice(i, i + 50).map(work))));
  return results;
}
