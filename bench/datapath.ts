// Slow: connections, round trips and throughput through a Service beside a direct connection, with each program, at 10 and 10,000 Services.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { connectInside, enter } from "../test/reference/foothold.ts";
import type { KubeObject } from "../test/reference/objects.ts";
import { type Mode, startProxy } from "../test/reference/proxy.ts";
import {
  clusterOf,
  endpointAddress,
  nodeName,
  type Size,
  serviceAddress,
  serviceObject,
  sizeText,
  sliceObject,
} from "./lib/cluster.ts";
import { configurationOf, untilReached } from "./lib/figures.ts";
import { publish, type Row } from "./lib/measure.ts";
import { cachedProtobuf } from "./lib/protobuf.ts";
import { onStage, programs, start, startAsRoot } from "./lib/run.ts";
import type { Stage } from "./lib/stage.ts";
import { type StreamPorts, serveStreams, streamRows } from "./lib/streams.ts";

const patience = Number(process.env.TURNOUT_PATIENCE ?? 120);
const mode: Mode = process.env.TURNOUT_MODE === "iptables" ? "iptables" : "nftables";
const sizes: readonly Size[] = [
  { services: 10, endpoints: 10 },
  { services: 10_000, endpoints: 10 },
];

const podPorts: StreamPorts = { echo: 8081, sink: 8082 };
const servicePorts: StreamPorts = { echo: 81, sink: 82 };

if (process.argv[2] === "pods") start(servePods);
else startAsRoot(main);

/** The pods are a process of their own, so that client and server do not share a thread. */
async function servePods(): Promise<void> {
  process.on("disconnect", () => process.exit(0));
  await serveStreams("0.0.0.0", podPorts);
  process.send!("ready");
}

async function main(): Promise<void> {
  const rows: Row[] = [];
  await onStage(async (stage) => {
    const pods = await startPods(stage);
    for (const size of sizes)
      for (const [name, program] of programs()) rows.push(...(await measure(stage, name, program, size)));
    pods.disconnect();
  });
  publish(rows);
}

async function startPods(stage: Stage): Promise<ChildProcess> {
  const pods = stage.pods.inside(() => fork(process.argv[1]!, ["pods"]));
  await once(pods, "message");
  return pods;
}

async function measure(stage: Stage, name: string, program: string, size: Size): Promise<readonly Row[]> {
  const foothold = enter(stage.node);
  const { services, endpoints } = size;
  const objects = [...clusterOf(size), ...streamService(services, endpoints)];
  const proxy = await startProxy(
    foothold,
    program,
    configurationOf(mode),
    nodeName,
    objects,
    cachedProtobuf(),
  );
  const title = `${name}, ${mode}, ${sizeText(size)}`;
  try {
    if ((await untilReached(stage, services - 1, size, 0, patience)) === null)
      throw new Error(`${title}: not ready after ${patience} s`);
    await proxy.ready();
    const way = (to: string, address: string, ports: StreamPorts) => ({
      name: to,
      connect: (server: keyof StreamPorts) => connectInside(stage.node, address, ports[server]),
    });
    return await streamRows(
      [
        way("direct", endpointAddress(services, 0), podPorts),
        way("Service", serviceAddress(services), servicePorts),
      ],
      `${title}: `,
    );
  } finally {
    await proxy.stop();
    await foothold.leave();
    stage.sweep();
  }
}

/** A Service in front of the echoing and the discarding server. */
function streamService(i: number, endpoints: number): readonly KubeObject[] {
  const [service, slice] = [serviceObject(i), sliceObject(i, endpoints)];
  const names = ["echo", "sink"] as const;
  const portOf = (server: keyof StreamPorts) => ({ name: server, protocol: "TCP" });
  return [
    {
      ...service,
      spec: {
        ...(service.spec as object),
        ports: names.map((server) => ({
          ...portOf(server),
          port: servicePorts[server],
          targetPort: podPorts[server],
        })),
      },
    },
    { ...slice, ports: names.map((server) => ({ ...portOf(server), port: podPorts[server] })) },
  ];
}
