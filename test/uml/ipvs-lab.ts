// Our daemon in ipvs mode on the node of the reference set-up, for tests that check the kernel and packets.
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll } from "vitest";
import { type IpvsHost, openIpvsHost } from "../../src/host/ipvs/host.ts";
import { type Family, families, familyOf, joinHostPort } from "../../src/model/address.ts";
import { serverKey } from "../../src/plan/ipvs/names.ts";
import type { ServerId } from "../../src/plan/ipvs/types.ts";
import { dualStack, referenceObjects } from "../cluster.ts";
import { type Conversation, openConversation } from "../kernel/conversation.ts";
import { resultOf, type Seen, send, senderAt } from "../kernel/probe.ts";
import { caughtUp } from "../kernel/program.ts";
import { type ProbeProtocol, resultText } from "../kernel/send-packet.ts";
import { type Configuration, type Daemon, eventually, openSite, type Site } from "../kernel/site.ts";
import { createWorld, type World } from "../kernel/world.ts";
import { inFamily } from "../places.ts";
import { type KubeObject, replaceObjects } from "../reference/objects.ts";

/** Everything is written for IPv4; what is done with `six` is done with its twin. */
export type Lab = {
  readonly world: World;
  readonly site: Site;
  daemon(): Daemon;
  /** Starts the daemon, or ends it and starts it again. */
  start(config?: Configuration): Promise<void>;
  stop(): Promise<void>;
  /** Makes these objects, and their twins, the cluster. */
  show(...objects: readonly KubeObject[]): void;
  /** The weights of a server's real servers; null when there is no such server. */
  weights(server: ServerId): Promise<Record<string, number> | null>;
  /** Waits until a server has these weights. */
  become(server: ServerId, weights: Record<string, number> | null): Promise<void>;
  /** The results of some packets in the terms of the truth tables, each once. */
  seen(from: string, to: string, port: number, protocol?: ProbeProtocol, count?: number): Promise<Seen[]>;
  /** The endpoints that connections reach, one after the other. */
  reach(from: string, to: string, port: number, count: number): Promise<string[]>;
  open(from: string, to: string, port: number, protocol?: "tcp" | "udp"): Conversation;
};

export const slow = 240_000;
/** The daemon has one core in common with the test, which must not use it up by polling. */
const everyMs = 200;

/** There from the first test on, with the daemon not yet started. */
export function openLab(): Lab {
  const made = {} as {
    world: World;
    site: Site;
    hosts: Record<Family, IpvsHost>;
    daemon: Daemon | null;
    shownAt: number;
  };
  beforeAll(async () => {
    made.world = await createWorld();
    made.site = await openSite(made.world.node);
    await made.site.openApi();
    const netns = made.world.node.path;
    made.hosts = {
      ipv4: await openIpvsHost({ family: "ipv4", netns }),
      ipv6: await openIpvsHost({ family: "ipv6", netns }),
    };
  }, slow);
  afterAll(async () => {
    await made.site.close();
    for (const family of families) await made.hosts[family].close();
    await made.world.close();
  }, slow);

  const weights = async (server: ServerId) => {
    const held = (await made.hosts[familyOf(server.address)].readDestinations([server])).get(
      serverKey(server),
    );
    if (held === undefined) return null;
    return Object.fromEntries([...held].map(([key, { weight }]) => [key, weight]));
  };
  const stop = async () => {
    made.daemon?.kill("SIGTERM");
    await made.daemon?.ended();
    made.daemon = null;
  };
  const probe = (from: string, address: string, port: number, protocol: ProbeProtocol) => ({
    from: { kind: "outside" as const, address: from },
    to: { address, port, protocol },
  });
  return {
    get world() {
      return made.world;
    },
    get site() {
      return made.site;
    },
    daemon: () => made.daemon!,
    async start(config = {}) {
      if (made.daemon !== undefined) await stop();
      made.daemon = made.site.start({ config: { mode: "ipvs", ...config } });
      await made.daemon.ready(undefined, slow, everyMs);
    },
    stop,
    show(...objects) {
      const both = objects.flatMap(dualStack);
      made.shownAt = Date.now() / 1000;
      replaceObjects(made.site.api, [...referenceObjects(both), ...both]);
    },
    weights,
    async become(server, wanted) {
      const isSo = async () => isDeepStrictEqual(await weights(server), wanted);
      // Servers come before addresses and rules: the results of packets are final after the Sync.
      await caughtUp(made.world.node, made.shownAt, 1.5, { timeoutMs: slow, everyMs: 100 });
      await eventually(isSo, `${serverKey(server)} has ${JSON.stringify(wanted)}`, slow / 2, everyMs);
    },
    async seen(from, to, port, protocol = "tcp", count = 1) {
      return [...new Set(await send(made.world, probe(from, to, port, protocol), count))].sort();
    },
    async reach(from, to, port, count) {
      const reached: string[] = [];
      for (let i = 0; i < count; i++) {
        const result = await resultOf(made.world, probe(from, to, port, "tcp"));
        reached.push(result.kind === "answered" ? result.endpoint : resultText(result));
      }
      return reached;
    },
    open: (from, address, port, protocol = "tcp") =>
      openConversation(senderAt(made.world, from), protocol, { address, port }),
  };
}

/** A Service `shop/NAME` and its slice: `local` and `remote` are the numbers of its endpoints here and there. */
export function shop(
  name: string,
  spec: Readonly<Record<string, unknown>>,
  endpoints: readonly (string | object)[],
  status: object = {},
): KubeObject[] {
  const {
    protocol = "TCP",
    port = 80,
    nodePort,
  } = spec as { protocol?: string; port?: number; nodePort?: number };
  const { protocol: _, port: __, nodePort: ___, ...rest } = spec;
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace: "shop", name },
      spec: {
        type: "ClusterIP",
        ports: [{ port, protocol, ...(nodePort === undefined ? {} : { nodePort }) }],
        ...rest,
      },
      status,
    },
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { namespace: "shop", name: `${name}-1`, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      ports: [{ name: "", port: 8080, protocol }],
      endpoints: endpoints.map((each) =>
        typeof each === "string"
          ? {
              addresses: [each],
              nodeName: each.startsWith("10.180.0.") ? "node-a" : "node-b",
              conditions: { ready: true },
            }
          : each,
      ),
    },
  ];
}

/** `10.180.0.1:8080` in either family. */
export function at(address: string, family: Family, port = 8080): string {
  return joinHostPort(inFamily(address, family), port);
}

/** A server at the address or at its twin. */
export function serverAt(
  address: string,
  family: Family,
  port = 80,
  protocol: ServerId["protocol"] = "tcp",
): ServerId {
  return { address: inFamily(address, family), port, protocol };
}
