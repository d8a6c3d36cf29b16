// Relays of the userspace mode beside a direct connection: throughput, latency, connections; 1,000 TCP and 10,000 UDP clients in parallel.
import { fork } from "node:child_process";
import { createSocket, type Socket as Datagrams } from "node:dgram";
import { connect, type Socket } from "node:net";
import { FdBudget } from "../src/host/relay/fd-budget.ts";
import { openTcpRelay } from "../src/host/relay/tcp.ts";
import { openUdpRelay } from "../src/host/relay/udp.ts";
import { publish, type Row } from "./lib/measure.ts";
import { start } from "./lib/run.ts";
import { once, type StreamPorts, serveStreams, streamRows, type Way } from "./lib/streams.ts";

const host = "127.0.0.1";
const tcpClients = 1_000;
const udpClients = 10_000;

if (process.argv[2] === "relay") void relay();
else start(main);

/** Clients and backends are here; the relays are a separate process, like the daemon, whose memory is measured. */
async function main(): Promise<void> {
  const ports = { ...(await serveStreams(host, { sink: 0, echo: 0 })), datagrams: await answering() };
  const relays = await startRelays(ports);
  const streams = await streamRows([wayTo("direct", ports), wayTo("relayed", relays.ports)]);
  publish([...streams, ...(await manyConnections(relays)), ...(await manyFlows(relays))]);
  process.exit(0);
}

type Ports = StreamPorts & { readonly datagrams: number };

function wayTo(name: string, ports: StreamPorts): Way {
  return { name, connect: (server) => connected(ports[server]) };
}

/** What the relays' process reports. */
type State = { readonly memoryMB: number; readonly flows: number };

type Relays = { readonly ports: Ports; readonly state: () => Promise<State> };

async function startRelays(backends: Ports): Promise<Relays> {
  const child = fork(process.argv[1]!, ["relay"], { execArgv: ["--expose-gc"] });
  const answerTo = (question: unknown): Promise<unknown> =>
    new Promise((resolve) => {
      child.once("message", resolve);
      child.send(question as object);
    });
  const ports = (await answerTo(backends)) as Ports;
  return { ports, state: () => answerTo({}) as Promise<State> };
}

async function relay(): Promise<void> {
  const room = new FdBudget(100_000);
  const limit = 16_384;
  const backends = await new Promise<Ports>((resolve) => process.once("message", resolve));
  const tcp = (port: number) =>
    openTcpRelay({ host, port: 0, limit, room, dialMs: [250], choose: () => ({ address: host, port }) });
  const [sink, echo] = await Promise.all([tcp(backends.sink), tcp(backends.echo)]);
  const choose = () => ({ address: host, port: backends.datagrams });
  const datagrams = await openUdpRelay({ host, port: 0, limit, room, idleMs: 120_000, choose });
  process.on("message", () => {
    globalThis.gc?.();
    process.send!({ memoryMB: process.memoryUsage().rss / 1e6, flows: datagrams.open() } satisfies State);
  });
  process.on("disconnect", () => process.exit(0));
  process.send!({ sink: sink.port, echo: echo.port, datagrams: datagrams.port } satisfies Ports);
}

async function manyConnections({ ports, state }: Relays): Promise<Row[]> {
  const before = await state();
  const started = performance.now();
  const clients = await Promise.all(Array.from({ length: tcpClients }, () => connected(ports.echo)));
  const answers = clients.map((client) => once(client, "data"));
  for (const client of clients) client.write("?");
  await Promise.all(answers);
  const seconds = (performance.now() - started) / 1000;
  const after = await state();
  for (const client of clients) client.destroy();
  const what = `${tcpClients.toLocaleString("en")} TCP clients at once`;
  return [
    { what: `${what}, all answered after`, value: seconds, unit: "s" },
    {
      what: `${what}, memory of the relay`,
      value: after.memoryMB - before.memoryMB,
      unit: "MB",
      limit: 100,
    },
  ];
}

async function manyFlows({ ports, state }: Relays): Promise<Row[]> {
  const before = await state();
  const started = performance.now();
  // Clients come and go, each hundred at another address of the loopback network; the relay keeps all of them.
  for (let i = 0; i < udpClients / 100; i++) {
    await Promise.all(Array.from({ length: 100 }, () => sendRequest(ports.datagrams, `127.1.0.${i + 1}`)));
  }
  const seconds = (performance.now() - started) / 1000;
  const after = await state();
  const what = `${udpClients.toLocaleString("en")} UDP clients`;
  return [
    {
      what: `${what}, all kept`,
      value: after.flows,
      unit: "flows",
      limit: udpClients,
      atLeast: true,
    },
    { what: `${what}, all answered after`, value: seconds, unit: "s" },
    {
      what: `${what}, memory of the relay`,
      value: after.memoryMB - before.memoryMB,
      unit: "MB",
      limit: 250,
    },
  ];
}

function sendRequest(port: number, from: string): Promise<void> {
  return new Promise((resolve) => {
    const client = createSocket("udp4");
    client.once("message", () => client.close(() => resolve()));
    client.bind({ address: from }, () => client.send("?", port, host));
  });
}

function answering(): Promise<number> {
  const socket: Datagrams = createSocket("udp4");
  socket.on("message", (_, from) => socket.send("!", from.port, from.address));
  return new Promise((resolve) => socket.bind(0, host, () => resolve(socket.address().port)));
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const client = connect({ host, port, noDelay: true }, () => resolve(client));
    client.on("error", reject);
  });
}
