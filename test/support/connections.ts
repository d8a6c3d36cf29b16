// An API server, a folder and a clock for tests of how a client connects; call `useConnections` once in a file.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { ApiServer, type ApiServerOptions } from "../../playground/api/server.ts";
import { apiClient } from "../../src/sources/api/client.ts";
import { type ConnectionOptions, resolveConnection } from "../../src/sources/api/connection.ts";
import { throttle } from "../../src/sources/api/throttle.ts";
import { realWorld, type World } from "../../src/sources/world.ts";
import { caCert, serverCert, serverKey } from "./certificates.ts";
import { type ManualClock, manualClock } from "./manual-clock.ts";

// Set again before each test.
export let folder: string;
export let server: ApiServer;
export let clock: ManualClock;
export let env: Record<string, string>;
export const open: { close(): void }[] = [];

export function useConnections(): void {
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "turnout-connection-"));
    clock = manualClock();
    env = { PATH: process.env.PATH! };
  });
  afterEach(async () => {
    for (const thing of open.splice(0)) thing.close();
    await server?.close();
    await rm(folder, { recursive: true, force: true });
  });
}

export async function serve(options: ApiServerOptions = {}) {
  server = new ApiServer(options);
  await server.listen();
}

export const world = (): World => ({ ...realWorld(clock), env });

export async function client(options: ConnectionOptions) {
  const connection = await resolveConnection(options, world());
  const made = apiClient(connection, world(), throttle({ qps: -1, burst: 0 }, clock), "kube-proxy/v1.37.0");
  open.push(made);
  return made;
}

export const signal = () => new AbortController().signal;
export const listServices = async (options: ConnectionOptions) =>
  (await client(options)).json({ path: "/api/v1/services" }, signal());
export const list = expect.objectContaining({ kind: "ServiceList" });
export const base64 = (text: string) => Buffer.from(text).toString("base64");

/** Writes a kubeconfig for the server with these entries and returns its path. */
export async function kubeconfig(cluster: object, user: object = {}): Promise<string> {
  const config = {
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    clusters: [{ name: "c", cluster: { server: server.url, ...cluster } }],
    users: [{ name: "u", user }],
  };
  await writeFile(join(folder, "config"), JSON.stringify(config));
  return join(folder, "config");
}

export const tls = { key: serverKey, cert: serverCert };
export const trust = { "certificate-authority-data": base64(caCert), "tls-server-name": "api.example" };
