// Relays of the userspace mode beside a direct connection: throughput, latency, connections; 1,000 TCP and 10,000 UDP clients at once.
import { createSocket, type Socket as Datagrams } from "node:dgram";
import { connect, createServer, type Socket } from "node:net";
import { openTcpRelay } from "../src/host/relay/tcp.ts";
import { openUdpRelay } from "../src/host/relay/udp.ts";
import { publish, type Row } from "./lib/measure.ts";

const host = "127.0.0.1";
const megabytes = 512;
const chunk = Buffer.alloc(1 << 16, 7);
const tcpClients = 1_000;
const udpClients = 10_000;
const limit = 16_384;

void main();

/** Client, relay and backend share this process and its one thread: what a relay costs shows at its worst. */
async function main(): Promise<void> {
  const sink = await serve((socket) => void socket.resume().on("end", () => socket.end()));
  const echo = await serve((socket) => void socket.pipe(socket));
  const [toSink, toEcho] = await Promise.all([sink, echo].map(relayTo));
  const rows: Row[] = [
    { what: "throughput, direct", value: await throughput(sink), unit: "MB/s" },
    { what: "throughput, relayed", value: await throughput(toSink!.port), unit: "MB/s" },
    { what: "round trip, direct, median", value: await roundTrip(echo), unit: "µs" },
    { what: "round trip, relayed, median", value: await roundTrip(toEcho!.port), unit: "µs" },
    { what: "connections, direct", value: await connectionRate(echo), unit: "/s" },
    { what: "connections, relayed", value: await connectionRate(toEcho!.port), unit: "/s" },
    ...(await manyConnections(toEcho!.port)),
  ];
  for (const relay of [toSink!, toEcho!]) await relay.close(true);
  rows.push(...(await manyFlows()));
  publish(rows);
  process.exit(0);
}

function relayTo(port: number) {
  return openTcpRelay({ host, port: 0, limit, dialMs: [250], choose: () => ({ address: host, port }) });
}

async function throughput(port: number): Promise<number> {
  const client = await connected(port);
  const started = performance.now();
  for (let sent = 0; sent < megabytes << 20; sent += chunk.length) {
    if (!client.write(chunk)) await once(client, "drain");
  }
  client.end();
  await once(client.resume(), "end");
  return megabytes / ((performance.now() - started) / 1000);
}

async function roundTrip(port: number): Promise<number> {
  const client = await connected(port);
  const times: number[] = [];
  for (let i = 0; i < 2_000; i++) {
    const started = performance.now();
    client.write("?");
    await once(client, "data");
    times.push((performance.now() - started) * 1000);
  }
  client.destroy();
  return times.sort((a, b) => a - b)[times.length >> 1]!;
}

/** One after the other: connect, one round trip, end. */
async function connectionRate(port: number): Promise<number> {
  const count = 1_000;
  const started = performance.now();
  for (let i = 0; i < count; i++) {
    const client = await connected(port);
    client.write("?");
    await once(client, "data");
    client.destroy();
  }
  return count / ((performance.now() - started) / 1000);
}

async function manyConnections(port: number): Promise<Row[]> {
  const before = memoryMB();
  const started = performance.now();
  const clients = await Promise.all(Array.from({ length: tcpClients }, () => connected(port)));
  const answers = clients.map((client) => once(client, "data"));
  for (const client of clients) client.write("?");
  await Promise.all(answers);
  const seconds = (performance.now() - started) / 1000;
  const memory = memoryMB() - before;
  for (const client of clients) client.destroy();
  const what = `${tcpClients.toLocaleString("en")} TCP clients at once`;
  return [
    { what: `${what}, all answered`, value: seconds, unit: "s" },
    { what: `${what}, memory with clients and backends`, value: memory, unit: "MB", limit: 150 },
  ];
}

async function manyFlows(): Promise<Row[]> {
  const backend = await answering();
  const relay = await openUdpRelay({
    host,
    port: 0,
    limit,
    idleMs: 120_000,
    choose: () => ({ address: host, port: backend }),
  });
  const before = memoryMB();
  const started = performance.now();
  // Clients come and go, so that this process has descriptors enough; the relay remembers all of them.
  for (let i = 0; i < udpClients; i += 100)
    await Promise.all(Array.from({ length: 100 }, () => ask(relay.port)));
  const seconds = (performance.now() - started) / 1000;
  const memory = memoryMB() - before;
  const what = `${udpClients.toLocaleString("en")} UDP clients`;
  const rows: Row[] = [
    {
      what: `${what}, remembered at once`,
      value: relay.open(),
      unit: "flows",
      limit: udpClients * 0.99,
      atLeast: true,
    },
    { what: `${what}, all answered`, value: seconds, unit: "s" },
    { what: `${what}, memory`, value: memory, unit: "MB", limit: 250 },
  ];
  await relay.close(true);
  return rows;
}

function ask(port: number): Promise<void> {
  return new Promise((resolve) => {
    const client = createSocket("udp4");
    client.once("message", () => client.close(() => resolve()));
    client.send("?", port, host);
  });
}

function answering(): Promise<number> {
  const socket: Datagrams = createSocket("udp4");
  socket.on("message", (_, from) => socket.send("!", from.port, from.address));
  return new Promise((resolve) => socket.bind(0, host, () => resolve(socket.address().port)));
}

function serve(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    onConnection(socket.on("error", () => {})),
  );
  return new Promise((resolve) => {
    server.listen({ port: 0, host, backlog: 4096 }, () =>
      resolve((server.address() as { port: number }).port),
    );
  });
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const client = connect({ host, port, noDelay: true }, () => resolve(client));
    client.on("error", reject);
  });
}

function once(socket: Socket, event: "data" | "drain" | "end"): Promise<void> {
  return new Promise((resolve) => socket.once(event, () => resolve()));
}

/** Everything this process holds, buffers and sockets too. */
function memoryMB(): number {
  globalThis.gc?.();
  return process.memoryUsage().rss / 1e6;
}
