// The real API server in protobuf and in JSON: lists, streaming lists and watches give equal Snapshots.
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Cluster } from "../../src/manifests/cluster.ts";
import { type Kind, kinds, slim } from "../../src/manifests/objects.ts";
import type { Snapshot } from "../../src/model/snapshot.ts";
import { systemClock } from "../../src/observe/clock.ts";
import { type ApiClient, apiClient } from "../../src/sources/api/client.ts";
import { resolveConnection } from "../../src/sources/api/connection.ts";
import { acceptHeader } from "../../src/sources/api/encoding/accept.ts";
import { decodeList } from "../../src/sources/api/encoding/decode.ts";
import { ApiFailure } from "../../src/sources/api/failure.ts";
import { watchedResources } from "../../src/sources/api/resources.ts";
import { apiSource } from "../../src/sources/api/source.ts";
import { unlimited } from "../../src/sources/api/throttle.ts";
import { realWorld } from "../../src/sources/world.ts";
import { findAssets } from "../assets.ts";
import { createNamespace, type Namespace, reasonToSkip } from "../kernel/netns.ts";
import { places } from "../places.ts";
import { viewOf } from "../support/api-rig.ts";
import { encodeObject } from "../support/protobuf/encode.ts";
import { type ControlPlane, startControlPlane, writeKubeconfig } from "./control-plane.ts";
import { type ApiRelay, relayTo } from "./relay.ts";
import { changes, objects, thisNode } from "./varied-objects.ts";

const assets = findAssets("etcd", "kube-apiserver");
const reason = reasonToSkip() ?? (assets.found ? null : assets.reason);
const { signal } = new AbortController();
const patiently = { timeout: 60_000, interval: 20 };
const resources = watchedResources(thisNode);

const accepts = {
  json: acceptHeader({ contentType: "application/json", acceptContentTypes: "" }),
  protobuf: acceptHeader({ contentType: "", acceptContentTypes: "" }),
};

describe("the real API server", () => {
  let netns: Namespace;
  let plane: ControlPlane;
  let relay: ApiRelay;
  let kubeconfig: string;

  beforeAll(async () => {
    if (reason !== null || !assets.found) return;
    netns = createNamespace("encodings");
    netns.ip("link set lo up", `addr add ${places.host}/32 dev lo`);
    plane = await startControlPlane(netns, { ...assets.paths, "kube-controller-manager": "false" });
    relay = await relayTo(netns, places.host, 6443);
    const server = `https://127.0.0.1:${relay.port}`;
    const user = { "client-certificate": plane.pki.admin.cert, "client-key": plane.pki.admin.key };
    kubeconfig = writeKubeconfig(`${plane.folder}/source.kubeconfig`, plane.pki.ca, server, user);
    for (const { method, path, body } of objects()) await accepted(method, path, body);
  });
  afterAll(async () => {
    relay?.close();
    await plane?.close();
    netns?.remove();
  });

  async function accepted(method: string, path: string, body: object): Promise<void> {
    const answer = await plane.api(method, path, body);
    if (answer.code >= 300) throw new Error(`${method} ${path}: ${answer.code} ${answer.body.message}`);
  }

  /** With the name that is in the server's certificate. */
  async function clientFor(accept: string): Promise<ApiClient> {
    const world = realWorld(systemClock);
    const connection = await resolveConnection({ kubeconfig }, world);
    const named = { ...connection, tlsServerName: "kubernetes.default.svc" };
    return apiClient(named, world, unlimited, "turnout/test", { accept });
  }

  it.for(kinds)("%s: the encoder of the tests writes what the server writes", async (kind, { skip }) => {
    if (reason !== null) return skip(reason);
    const request = { path: resources[kind].path, protobuf: true };
    const [inJson, inProtobuf] = await Promise.all([
      (await clientFor(accepts.json)).read(request, signal),
      (await clientFor(accepts.protobuf)).read(request, signal),
    ]);
    expect([inJson.encoding.name, inProtobuf.encoding.name]).toEqual(["json", "protobuf"]);
    const list = JSON.parse(inJson.bytes.toString());
    expect(list.items.length).toBeGreaterThan(0);
    const encoded = encodeObject(list)!;
    expect(withoutZeros(decodeList(kind, encoded))).toEqual(withoutZeros(decodeList(kind, inProtobuf.bytes)));
    const contents = [
      list.items.map((item: unknown) => slim(kind, item)),
      decodeList(kind, inProtobuf.bytes).items as unknown[],
    ].map((items) => contentsOf(kind, items));
    expect(contents[1]).toEqual(contents[0]);
  });

  it.for(["streaming list", "list"] as const)("%s, then watch", async (how, { skip }) => {
    if (reason !== null) return skip(reason);
    const life = new AbortController();
    const sources = await Promise.all(
      Object.values(accepts).map(async (accept) => {
        const client = await clientFor(accept);
        const used = how === "list" ? withoutStreaming(client) : client;
        return followed(used, life.signal);
      }),
    );
    const [inJson, inProtobuf] = sources as [Followed, Followed];
    const agree = () =>
      vi.waitFor(() => {
        const [json, protobuf] = [inJson.last()!, inProtobuf.last()!];
        expect(viewOf(protobuf)).toEqual(viewOf(json));
        expect(protobuf.problems).toEqual(json.problems);
      }, patiently);
    await vi.waitFor(() => expect(inJson.last()?.ipv4.serviceCIDRs.length).toBeGreaterThan(0), patiently);
    await agree();
    expect(inProtobuf.last()!.ipv4.ports.size).toBeGreaterThan(30);
    for (const { change, check } of changes(how)) {
      for (const { method, path, body } of change) await accepted(method, path, body);
      await vi.waitFor(() => expect(check(inJson.last()!)).toBe(true), patiently);
      await agree();
    }
    for (const { status } of sources)
      expect(Object.values(status()).map(({ failures }) => failures)).toEqual(
        kinds.map(() => (how === "list" ? 1 : 0)),
      );
    life.abort();
    await Promise.all(sources.map(({ ended }) => ended));
  });
});

type Followed = Awaited<ReturnType<typeof followed>>;

function followed(client: ApiClient, life: AbortSignal) {
  const source = apiSource({ client, nodeName: thisNode, world: realWorld(systemClock) }, life);
  let last: Snapshot | undefined;
  const ended = (async () => {
    for await (const snapshot of source.snapshots(life)) last = snapshot;
    client.close();
  })();
  return { last: () => last, status: () => source.status().resources, ended };
}

/** As of a server without streaming lists. */
function withoutStreaming(client: ApiClient): ApiClient {
  return {
    ...client,
    stream: (request, signal) =>
      request.query?.sendInitialEvents === undefined
        ? client.stream(request, signal)
        : Promise.reject(new ApiFailure("refused", "no streaming lists", { code: 422 })),
  };
}

function contentsOf(kind: Kind, items: readonly unknown[]): unknown {
  const cluster = new Cluster(thisNode);
  cluster.replace(kind, items);
  const snapshot = cluster.take();
  return { ...(viewOf(snapshot) as object), problems: snapshot.problems };
}

/** Go writes numbers that are not set as 0. */
function withoutZeros(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, item: unknown) => (item === 0 ? undefined : item)));
}
