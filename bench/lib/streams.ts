// Traffic for benchmarks: servers that echo or discard, and clients that measure throughput, round trips and connections.
import { createServer, type Socket } from "node:net";
import type { Row } from "./measure.ts";

const megabytes = 512;
const chunk = Buffer.alloc(1 << 16, 7);

/** Where to find the two servers. */
export type StreamPorts = { readonly echo: number; readonly sink: number };

/** Port 0: any free one. */
export async function serveStreams(host: string, wanted: StreamPorts): Promise<StreamPorts> {
  return {
    echo: await serve(host, wanted.echo, (socket) => void socket.pipe(socket)),
    sink: await serve(host, wanted.sink, (socket) => void socket.resume().on("end", () => socket.end())),
  };
}

function serve(host: string, port: number, onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    onConnection(socket.on("error", () => {})),
  );
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host, backlog: 4096 }, () => resolve((server.address() as { port: number }).port));
  });
}

/** A way to reach the two servers, such as directly or through a Service. */
export type Way = {
  readonly name: string;
  readonly connect: (server: keyof StreamPorts) => Socket | Promise<Socket>;
};

type Measure = {
  readonly what: string;
  readonly unit: string;
  readonly atLeast: boolean;
  readonly take: (connect: Way["connect"]) => Promise<number>;
};

const measures: readonly Measure[] = [
  {
    what: "throughput",
    unit: "MB/s",
    atLeast: true,
    take: async (connect) => throughput(await connect("sink")),
  },
  { what: "round trip p50", unit: "µs", atLeast: false, take: (connect) => roundTrip(connect, 0.5) },
  { what: "round trip p99", unit: "µs", atLeast: false, take: (connect) => roundTrip(connect, 0.99) },
  { what: "connections with a round trip", unit: "/s", atLeast: true, take: connectionRate },
];

const rounds = 5;

/**
 * Each measure both ways, alternately, and the best of the rounds, since other work on the machine only ever slows them down;
 * the overhead is that of the second way.
 */
export async function streamRows(ways: readonly [Way, Way], prefix = ""): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const { what, unit, atLeast, take } of measures) {
    const values = ways.map((): number[] => []);
    for (let round = 0; round < rounds; round++)
      for (const [i, { connect }] of ways.entries()) values[i]!.push(await take(connect));
    const [first, second] = values.map((taken) => (atLeast ? Math.max(...taken) : Math.min(...taken)));
    const cost = atLeast ? first! / second! : second! / first!;
    rows.push({ what: `${prefix}${what}, ${ways[0].name}`, value: first!, unit });
    rows.push({ what: `${prefix}${what}, ${ways[1].name}`, value: second!, unit });
    rows.push({ what: `${prefix}${what}: overhead`, value: (cost - 1) * 100, unit: "%" });
  }
  return rows;
}

/** MB/s of one connection to the server that discards. */
async function throughput(client: Socket): Promise<number> {
  const started = performance.now();
  for (let sent = 0; sent < megabytes << 20; sent += chunk.length) {
    if (!client.write(chunk)) await once(client, "drain");
  }
  client.end();
  await once(client.resume(), "end");
  return megabytes / ((performance.now() - started) / 1000);
}

/** Microseconds of a request and its response on one connection to the server that echoes. */
async function roundTrip(connect: Way["connect"], quantile: number): Promise<number> {
  const client = await connect("echo");
  const taken: number[] = [];
  for (let i = 0; i < 5_000; i++) {
    const started = performance.now();
    client.write("?");
    await once(client, "data");
    taken.push((performance.now() - started) * 1000);
  }
  client.destroy();
  return taken.sort((a, b) => a - b)[Math.floor(taken.length * quantile)]!;
}

/** One after the other: connect, one round trip, close. */
async function connectionRate(connect: Way["connect"]): Promise<number> {
  const count = 1_000;
  const started = performance.now();
  for (let i = 0; i < count; i++) {
    const client = await connect("echo");
    client.write("?");
    await once(client, "data");
    client.destroy();
  }
  return count / ((performance.now() - started) / 1000);
}

export function once(socket: Socket, event: "data" | "drain" | "end"): Promise<void> {
  return new Promise((resolve) => socket.once(event, () => resolve()));
}
