// The least Kubernetes API that a kube-proxy can live on: lists and watches of what it reads, changed by the test.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Server as Listener } from "node:net";

export type KubeObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
  readonly [field: string]: unknown;
};

export type Api = {
  /** Makes these the cluster's objects; watchers are told the difference. */
  replace(objects: readonly KubeObject[]): void;
  close(): void;
};

/** An object as the test gave it, and as clients see it. */
type Stored = { readonly given: KubeObject; readonly seen: KubeObject };
type Watcher = {
  readonly kind: string;
  readonly wants: (object: KubeObject) => boolean;
  send(event: Event): void;
};
type Event = { readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; readonly object: unknown };

const kinds: Readonly<Record<string, { readonly kind: string; readonly apiVersion: string }>> = {
  "/api/v1/services": { kind: "Service", apiVersion: "v1" },
  "/api/v1/nodes": { kind: "Node", apiVersion: "v1" },
  "/apis/discovery.k8s.io/v1/endpointslices": { kind: "EndpointSlice", apiVersion: "discovery.k8s.io/v1" },
  "/apis/networking.k8s.io/v1/servicecidrs": { kind: "ServiceCIDR", apiVersion: "networking.k8s.io/v1" },
};

export function serveApi(listener: Listener): Api {
  let store = new Map<string, Stored>();
  let version = 1;
  const watchers = new Set<Watcher>();

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://api");
    const type = kinds[url.pathname];
    if (request.method !== "GET" || type === undefined) return refuse(request, response);
    const wants = selector(url.searchParams);
    const matching = () =>
      [...store.values()]
        .map(({ seen }) => seen)
        .filter((object) => object.kind === type.kind && wants(object));
    response.setHeader("content-type", "application/json");
    if (url.searchParams.get("watch") !== "true") {
      const metadata = { resourceVersion: String(version) };
      return response.end(
        JSON.stringify({
          kind: `${type.kind}List`,
          apiVersion: type.apiVersion,
          metadata,
          items: matching(),
        }),
      );
    }
    const watcher: Watcher = {
      kind: type.kind,
      wants,
      send: (event) => void response.write(`${JSON.stringify(event)}\n`),
    };
    response.flushHeaders();
    if (url.searchParams.get("sendInitialEvents") === "true") {
      for (const object of matching()) watcher.send({ type: "ADDED", object });
      watcher.send({ type: "BOOKMARK", object: initialEventsEnd(type, version) });
    }
    watchers.add(watcher);
    response.once("close", () => watchers.delete(watcher));
    return undefined;
  });
  server.listen(listener);

  const tell = (type: Event["type"], object: KubeObject): void => {
    for (const watcher of watchers)
      if (watcher.kind === object.kind && watcher.wants(object)) watcher.send({ type, object });
  };
  return {
    replace(objects) {
      const before = store;
      store = new Map();
      for (const given of objects) {
        const key = keyOf(given);
        const old = before.get(key);
        const same = old !== undefined && JSON.stringify(old.given) === JSON.stringify(given);
        const stored = same ? old : { given, seen: stamped(given, ++version) };
        store.set(key, stored);
        // A watch whose selector stops matching would see a deletion; the test's states do not do that.
        if (!same) tell(old === undefined ? "ADDED" : "MODIFIED", stored.seen);
      }
      for (const [key, { given }] of before) if (!store.has(key)) tell("DELETED", stamped(given, ++version));
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function keyOf({ kind, metadata }: KubeObject): string {
  return `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;
}

function stamped(object: KubeObject, version: number): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

function initialEventsEnd(type: { kind: string; apiVersion: string }, version: number): KubeObject {
  const annotations = { "k8s.io/initial-events-end": "true" };
  return { ...type, metadata: { name: "", resourceVersion: String(version), annotations } };
}

/** The two selectors kube-proxy uses: a label that must be absent, a field that must (not) have a value. */
function selector(query: URLSearchParams): (object: KubeObject) => boolean {
  const absent = (query.get("labelSelector") ?? "").split(",").filter((term) => term.startsWith("!"));
  const name = (query.get("fieldSelector") ?? "").match(/^metadata\.name=(.*)$/)?.[1];
  const noHeadless = query.get("fieldSelector") === "spec.clusterIP!=None";
  return (object) =>
    absent.every((term) => object.metadata.labels?.[term.slice(1)] === undefined) &&
    (name === undefined || object.metadata.name === name) &&
    !(noHeadless && (object.spec as { clusterIP?: string } | undefined)?.clusterIP === "None");
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  response.statusCode = request.method === "POST" ? 201 : 404;
  response.setHeader("content-type", "application/json");
  response.end(
    JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", code: response.statusCode }),
  );
}
