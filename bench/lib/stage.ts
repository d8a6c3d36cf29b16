// One node and all its pods as two network namespaces: every pod address responds with its own address.
import { joinHostPort } from "../../src/model/address.ts";
import {
  AF_INET,
  accept,
  bind,
  close,
  connect,
  listen,
  localName,
  POLLIN,
  receive,
  SOCK_STREAM,
  send,
  socket,
} from "../../test/kernel/libc.ts";
import { createNamespace, type Namespace } from "../../test/kernel/netns.ts";
import { type Poller, startPoller } from "../../test/kernel/poller.ts";
import { parseGreeting } from "../../test/kernel/servers.ts";

export type Stage = {
  readonly node: Namespace;
  /** Where all pods are. */
  readonly pods: Namespace;
  /** The endpoint (`address:port`) that a connection from the node reaches; null when it fails. */
  reach(address: string, port: number): Promise<string | null>;
  /** Microseconds from the first packet of a connection to its response; null when there was none immediately. */
  firstPacket(address: string, port: number): number | null;
  /** Removes all rules and flows. */
  sweep(): void;
  close(): Promise<void>;
};

export const podPort = 8080;

export function createStage(): Stage {
  const node = createNamespace("bench-node");
  const pods = createNamespace("bench-pods");
  const poller = startPoller();
  for (const netns of [node, pods]) netns.ip("link set lo up");
  node.sysctl({
    "net.ipv4.ip_forward": 1,
    "net.ipv6.conf.all.forwarding": 1,
    "net.ipv4.icmp_ratelimit": 0,
    "net.ipv4.ip_local_port_range": "10000 60999",
  });
  node.ip(
    `link add pods type veth peer name node netns ${pods.name}`,
    "link set pods up",
    "addr add 192.168.0.2/24 dev pods",
    "addr add 2001:db8::2/64 dev pods nodad",
    "route add 10.0.0.0/8 via 192.168.0.1",
    "route add default via 192.168.0.1",
  );
  // Service addresses without rules are refused immediately, so that a probe never waits for a timeout.
  pods.sysctl({
    "net.ipv4.ip_forward": 1,
    "net.ipv4.icmp_ratelimit": 0,
    "net.ipv4.icmp_msgs_per_sec": 1_000_000,
  });
  // Every address of 10/8 is local to this namespace: one server acts as all pods.
  pods.ip(
    "link set node up",
    "addr add 192.168.0.1/24 dev node",
    "route add local 10.0.0.0/8 dev lo",
    "route add unreachable 172.16.0.0/12",
  );
  serveAll(pods, poller);
  return {
    node,
    pods,
    reach: (address, port) => reach(node, poller, address, port),
    firstPacket: (address, port) => firstPacket(node, address, port),
    sweep() {
      node.run("nft", "flush", "ruleset");
      node.run("conntrack", "-F");
    },
    async close() {
      await poller.stop();
      for (const netns of [node, pods]) netns.remove();
    },
  };
}

function serveAll(pods: Namespace, poller: Poller): void {
  const fd = pods.inside(() => socket(AF_INET, SOCK_STREAM, 0));
  bind(fd, { address: "0.0.0.0", port: podPort });
  listen(fd);
  poller.watch(fd, POLLIN, () => {
    for (let client = accept(fd); client !== null; client = accept(fd)) greet(poller, client.fd);
  });
}

function greet(poller: Poller, fd: number): void {
  const { address, port } = localName(fd);
  send(fd, Buffer.from(JSON.stringify({ endpoint: joinHostPort(address, port), saw: { address, port } })));
  const end = (): void => {
    poller.forget(fd);
    close(fd);
  };
  poller.watch(fd, POLLIN, () => {
    try {
      if (receive(fd)?.data.length === 0) end();
    } catch {
      end(); // the client is gone
    }
  });
}

function firstPacket(node: Namespace, address: string, port: number): number | null {
  const { fd, micros } = connectAtOnce(node, address, port);
  if (fd !== null) close(fd);
  return fd === null ? null : micros;
}

async function reach(node: Namespace, poller: Poller, address: string, port: number): Promise<string | null> {
  const { fd } = connectAtOnce(node, address, port);
  if (fd === null) return null;
  const answer = await new Promise<string>((resolve) => {
    const timer = setTimeout(resolve, 1000, "");
    poller.watch(fd, POLLIN, () => {
      clearTimeout(timer);
      resolve(receive(fd)?.data.toString() ?? "");
    });
  });
  poller.forget(fd);
  close(fd);
  return parseGreeting(answer)?.endpoint ?? null;
}

/**
 * Between namespaces of one machine the whole handshake runs inside connect(): its duration is the answer's, and
 * a client that is not connected then was refused.
 */
function connectAtOnce(
  node: Namespace,
  address: string,
  port: number,
): { readonly fd: number | null; readonly micros: number } {
  const fd = node.inside(() => socket(AF_INET, SOCK_STREAM, 0));
  const started = process.hrtime.bigint();
  connect(fd, { address, port });
  const micros = Number(process.hrtime.bigint() - started) / 1000;
  const state = connect(fd, { address, port });
  if (state === "" || state === "EISCONN") return { fd, micros };
  close(fd);
  return { fd: null, micros };
}
