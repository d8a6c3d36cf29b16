// A cluster in network namespaces of this machine: its state, and the operations on it.

import { rmdirSync, rmSync } from "node:fs";
import { arch, cpus, release, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ModeName } from "../src/config/modes.ts";
import { defaultConfig, nodeRoutes } from "../src/explain/node-routes.ts";
import { printTrace } from "../src/explain/print.ts";
import { familyOfTo, parseFrom, parseTo, senderText } from "../src/explain/question.ts";
import { questionOf, type Sender } from "../src/explain/resolve.ts";
import { trace } from "../src/explain/trace.ts";
import { namespaceName, statePath } from "../src/inspect/playgrounds.ts";
import { familyOf } from "../src/model/address.ts";
import type { Snapshot } from "../src/model/snapshot.ts";
import { modes } from "../src/modes/index.ts";
import { systemClock } from "../src/observe/clock.ts";
import { firstSnapshot } from "../src/sources/first.ts";
import { parseSourceSpec } from "../src/sources/index.ts";
import {
  type Access,
  kubeconfigPath,
  makeAccess,
  makeStateFolder,
  nodeApiPort,
  nodeKubeconfigPath,
  writeKubeconfigs,
} from "./access.ts";
import type { AdmissionHooks, Admit } from "./api/admission-hooks.ts";
import { type ApiObject, dig, isMap, scalar } from "./api/objects/object.ts";
import { ApiServer } from "./api/server.ts";
import { admission, checkDelete } from "./cluster/admission.ts";
import { Controller, labelOf } from "./cluster/controller.ts";
import { exampleManifests, type Manifest, parseManifests } from "./cluster/example.ts";
import { foundation, type Machine } from "./cluster/foundation.ts";
import { gracefulDeletion } from "./cluster/graceful-deletion.ts";
import { NodeDaemon, type SyncReport } from "./daemon.ts";
import { isSynced } from "./in-place.ts";
import { nodePlaces, outsideAddresses } from "./net/layout.ts";
import { removeStale, runScriptIn, startCleanupProcess } from "./net/namespaces.ts";
import { Network } from "./net/network.ts";
import { type SendResult, send } from "./net/send.ts";
import { refuserOf, trackFlows } from "./net/tracked.ts";

export type PlaygroundOptions = {
  readonly mode: ModeName;
  /** Port of the API on loopback; another free one when it is taken. */
  readonly port: number;
  readonly program: readonly string[];
  readonly manifests?: readonly Manifest[];
  readonly onSync?: (report: SyncReport) => void;
  readonly onMessage?: (line: string) => void;
};

/** One request that was sent. */
export type Sent = { readonly from: string; readonly to: string; readonly result: SendResult };

/** A command that failed for a reason the user can fix. */
export class CommandError extends Error {}

export class Playground {
  readonly api: ApiServer;
  readonly mode: ModeName;
  readonly #network: Network;
  readonly #controller: Controller;
  readonly #daemons = new Map<string, NodeDaemon>();

  private constructor(
    options: PlaygroundOptions,
    api: ApiServer,
    network: Network,
    manifests: readonly Manifest[],
  ) {
    this.api = api;
    this.mode = options.mode;
    this.#network = network;
    for (const object of [
      ...foundation(new Date(), thisMachine()),
      ...missingNamespaces(manifests),
      ...manifests,
    ])
      api.put(admitted(api, object));
    this.#controller = new Controller(api, network);
    this.#controller.settle();
    for (const { name } of nodePlaces) this.#daemons.set(name, this.#startDaemon(name, options));
  }

  /** Removes everything again when it fails. */
  static async start(options: PlaygroundOptions): Promise<Playground> {
    removeStale();
    // Before the first object that needs cleanup.
    startCleanupProcess();
    makeStateFolder();
    const network = await Network.open();
    const access = makeAccess(Date.now());
    const api = await listen(options.port, access);
    let playground: Playground | null = null;
    try {
      const manifests = options.manifests ?? parseManifests(exampleManifests);
      writeKubeconfigs(access, api.url);
      playground = new Playground(options, api, network, manifests);
      await Promise.all([...playground.#daemons.values()].map((daemon) => daemon.ready()));
      await playground.settled();
      return playground;
    } catch (error) {
      if (playground === null) {
        await api.close();
        network.close();
      } else await playground.close();
      throw error;
    }
  }

  get kubeconfig(): string {
    return kubeconfigPath();
  }

  /** Name of a node's network namespace. */
  namespaceOf(node: string): string {
    return namespaceName(node);
  }

  statusSocketOf(node: string): string {
    return join(statePath(), `${node}.sock`);
  }

  async close(): Promise<void> {
    this.#controller.close();
    await Promise.all([...this.#daemons.values()].map((daemon) => daemon.stop()));
    await this.api.close();
    this.#network.close();
    rmSync(statePath(), { recursive: true, force: true });
    try {
      rmdirSync(dirname(statePath()));
    } catch {
      // Another playground is running.
    }
  }

  /** Sends one request and waits for its result. */
  async send(from: string, to: string): Promise<Sent> {
    const place = this.#locate(from, to);
    const snapshot = await this.snapshot(place.node);
    const { routes, family, packet } = this.#question(snapshot, place, to);
    if (packet.to.protocol !== "tcp" && packet.to.protocol !== "udp")
      throw new CommandError(`cannot send ${packet.to.protocol}; the playground sends tcp and udp`);
    const source = place.sender.kind === "outside" ? packet.from.address : undefined;
    const destination = { address: packet.to.address, port: packet.to.port, protocol: packet.to.protocol };
    const tracking = await trackFlows(destination);
    try {
      const result = await send(this.#network.inside(place.label), destination, source);
      if (result.kind !== "refused") return { from, to, result };
      const refuser = refuserOf(destination, place.node, await tracking.flows());
      if (refuser.kind === "listener") return { from, to, result: { ...result, by: refuser.endpoint } };
      // A kernel without conntrack events looks the same, so check the rules too.
      const { outcome } = modes[this.mode].decide(routes[family], packet);
      const isKnown = refuser.node !== place.node || outcome.kind === "reject";
      return { from, to, result: isKnown ? { kind: "rejected", node: refuser.node, ms: result.ms } : result };
    } finally {
      tracking.stop();
    }
  }

  /** The trace of a packet, on the node where it starts or arrives. */
  async explain(from: string, to: string): Promise<string> {
    const place = this.#locate(from, to);
    const snapshot = await this.snapshot(place.node);
    const { routes, family, packet } = this.#question(snapshot, place, to);
    return printTrace(trace(modes[this.mode], routes[family], packet));
  }

  /** A sender that is named, as its address, and the node where its packets start; others as they are. */
  senderOf(from: string, to: string): { readonly from: string; readonly node: string | null } {
    const parsed = parseFrom(from);
    if (!parsed.ok || parsed.value.kind !== "named") return { from, node: null };
    const { sender, node } = this.#locate(from, to);
    return { from: senderText(sender), node };
  }

  /** Name of each pod, by its addresses. */
  podNames(): ReadonlyMap<string, string> {
    return new Map(
      this.api
        .list("Pod")
        .flatMap((pod) => addressesOf(pod).map((address) => [address, pod.metadata.name] as const)),
    );
  }

  snapshot(node: string): Promise<Snapshot> {
    const spec = parseSourceSpec(`kubeconfig:${this.kubeconfig}`, "turnout-playground");
    return firstSnapshot(spec, node, systemClock, new AbortController().signal);
  }

  scale(name: string, replicas: number): void {
    const set = this.#find("Deployment", name);
    this.api.put({ ...set, spec: { ...(set.spec as object), replicas } });
  }

  /** Immediately, as in a crash; its Deployment, if any, starts another. */
  kill(name: string): void {
    this.api.deleteGracefully(this.#find("Pod", name), 0);
  }

  /** The pod keeps serving until its grace period ends. */
  stop(name: string, graceSeconds?: number): void {
    this.api.deleteGracefully(this.#find("Pod", name), graceSeconds);
  }

  /** A Pod that is not ready keeps running but gets no traffic. */
  setReady(name: string, ready: boolean): void {
    const pod = this.#find("Pod", name);
    const annotations = {
      ...(pod.metadata.annotations as object),
      "playground.turnout/ready": String(ready),
    };
    this.api.put({ ...pod, metadata: { ...pod.metadata, annotations } });
  }

  /** Cordons the node and deletes its Pods. */
  drain(node: string): void {
    const name = this.#cordon(node, true);
    for (const pod of this.api.list("Pod"))
      if (dig(pod, "spec.nodeName") === name) this.api.deleteGracefully(pod);
  }

  uncordon(name: string): void {
    this.#cordon(name, false);
  }

  /** Flushes all rules, as another program might. */
  flush(node: string): void {
    runScriptIn(namespaceName(this.#find("Node", node).metadata.name), flushScript);
  }

  apply(object: Manifest): void {
    this.api.put(admitted(this.api, object));
  }

  /** Resolves when the rules of every node match the cluster; false after the timeout. */
  async settled(timeoutMs = 15_000): Promise<boolean> {
    const deadline = Date.now() + timeoutMs;
    this.#controller.settle();
    for (const { name } of nodePlaces) {
      const socket = this.statusSocketOf(name);
      while (!(await isSynced(name, this.mode, await this.snapshot(name), socket))) {
        if (Date.now() > deadline) return false;
        await sleep(50);
      }
    }
    return true;
  }

  #startDaemon(node: string, options: PlaygroundOptions): NodeDaemon {
    return new NodeDaemon({
      node,
      mode: options.mode,
      program: options.program,
      statusSocket: this.statusSocketOf(node),
      kubeconfig: nodeKubeconfigPath(),
      listening: this.#network.listenOnLoopback(node, nodeApiPort),
      onConnection: (connection) => this.api.adopt(connection),
      onSync: (report) => options.onSync?.(report),
      onExit: (lastError) =>
        options.onMessage?.(
          `the proxy of ${node} exited${lastError === "" ? "" : `: ${lastError}`}; restarting it`,
        ),
    });
  }

  #question(snapshot: Snapshot, { node, sender }: Location, to: string) {
    const routes = nodeRoutes(snapshot, node, defaultConfig(this.mode));
    const parsed = parseTo(to);
    if (!parsed.ok) throw new CommandError(parsed.reason);
    const question = questionOf(sender, parsed.value, routes);
    if (!question.ok) throw new CommandError(question.reason);
    return { routes, ...question.value };
  }

  /** The sender, and the node that sees the packet first. */
  #locate(text: string, towards: string): Location {
    const parsed = parseFrom(text);
    if (!parsed.ok) throw new CommandError(parsed.reason);
    const from = parsed.value;
    const first = nodePlaces[0]!.name;
    if (from.kind === "outside") {
      if (!outsideAddresses.includes(from.address))
        throw new CommandError(
          `no outside client has this address; outside clients: ${outsideAddresses.join(", ")}`,
        );
      return { label: "outside", node: nodeAt(towards) ?? first, sender: from };
    }
    if (from.kind === "node") return { label: first, node: first, sender: from };
    const node = nodePlaces.find(
      ({ name }) => from.kind === "named" && from.only !== "pod" && name === from.name,
    );
    if (from.kind === "named" && from.only === "node" && node === undefined) this.#find("Node", from.name);
    if (node !== undefined) return { label: node.name, node: node.name, sender: { kind: "node" } };
    const pod =
      from.kind === "named"
        ? this.#find("Pod", from.namespace === null ? from.name : `${from.namespace}/${from.name}`)
        : this.api.list("Pod").find((each) => addressesOf(each).includes(from.address));
    if (pod === undefined) throw new CommandError(`no pod has the address ${text}`);
    const to = parseTo(towards);
    const family =
      (to.ok ? familyOfTo(to.value) : null) ?? (from.kind === "pod" ? familyOf(from.address) : "ipv4");
    const address = addressesOf(pod).find((each) => familyOf(each) === family);
    if (address === undefined) throw new CommandError(`${text} is not running yet`);
    const otherAddress = addressesOf(pod).find((each) => familyOf(each) !== family);
    const sender: Sender = { kind: "pod", address, ...(otherAddress === undefined ? {} : { otherAddress }) };
    return { label: labelOf(pod), node: String(dig(pod, "spec.nodeName")), sender };
  }

  /** Returns the name without a prefix. */
  #cordon(name: string, unschedulable: boolean): string {
    const node = this.#find("Node", name);
    this.api.put({ ...node, spec: { ...(node.spec as object), unschedulable } });
    return node.metadata.name;
  }

  #find(kind: keyof typeof shortKinds, text: string): ApiObject {
    const all = this.api.list(kind);
    const name = text.replace(shortKinds[kind], "");
    const [found, ...others] = all.filter(
      ({ metadata }) => metadata.name === name || `${metadata.namespace}/${metadata.name}` === name,
    );
    if (others.length > 0) {
      const places = [found!, ...others].map(({ metadata }) => `${metadata.namespace}/${name}`);
      throw new CommandError(
        `${places.length} objects of kind ${kind} are named ${name}; use ${places.join(" or ")}`,
      );
    }
    if (found !== undefined) return found;
    const names = all.map(({ metadata }) => metadata.name);
    const some = names.length > 20 ? [...names.slice(0, 20), `${names.length - 20} more`] : names;
    const known = names.length === 0 ? "there are none" : `known: ${some.join(", ")}`;
    throw new CommandError(`${kind} ${JSON.stringify(name)} not found; ${known}`);
  }
}

/** `pod/web-1`, as kubectl writes names. */
const shortKinds = {
  Pod: /^(po|pods?)\//,
  Node: /^(no|nodes?)\//,
  Deployment: /^(deploy|deployments?)\//,
} as const;

/** Legacy tables exist only when a program has used them. */
const flushScript = `nft flush ruleset
  for six in "" 6; do
    tables=$(cat /proc/net/ip\${six}_tables_names 2>/dev/null)
    [ -z "$tables" ] || printf '*%s\\nCOMMIT\\n' $tables | ip\${six}tables-legacy-restore
  done`;

type Location = { readonly label: string; readonly node: string; readonly sender: Sender };

/** The node with the destination address: it sees the packet first. */
function nodeAt(towards: string): string | null {
  const to = parseTo(towards);
  if (!to.ok || to.value.kind !== "address") return null;
  const { address } = to.value;
  return nodePlaces.find(({ addresses }) => Object.values(addresses).includes(address))?.name ?? null;
}

function addressesOf(pod: ApiObject): string[] {
  const all = dig(pod, "status.podIPs");
  return Array.isArray(all) ? all.filter(isMap).map(({ ip }) => scalar(ip)) : [];
}

/** On the requested port, or on any free port. */
async function listen(port: number, { identity, token }: Access): Promise<ApiServer> {
  for (const wanted of [port, 0]) {
    const hooks: AdmissionHooks = {
      admit: (...args) => admissionTo(api)(...args),
      terminate: gracefulDeletion(Date.now),
      checkDelete: checkDelete,
    };
    const api = new ApiServer({ port: wanted, hooks, tls: identity, token: () => token });
    try {
      await api.listen();
      return api;
    } catch (error) {
      if (wanted === 0) throw error;
    }
  }
  throw new Error("cannot listen on loopback");
}

function admissionTo(api: ApiServer): Admit {
  return admission({
    services: () => api.list("Service"),
    hasNamespace: (name) => api.list("Namespace").some(({ metadata }) => metadata.name === name),
  });
}

/** Namespaces that objects use and no manifest creates. */
function missingNamespaces(manifests: readonly Manifest[]): Manifest[] {
  const named = manifests.flatMap(({ metadata }) => metadata?.namespace ?? []);
  const made = manifests.flatMap(({ kind, metadata }) =>
    kind === "Namespace" ? (metadata?.name ?? []) : [],
  );
  return [...new Set(named)]
    .filter((name) => name !== "default" && !made.includes(name))
    .map((name) => ({ kind: "Namespace", metadata: { name } }));
}

function admitted(api: ApiServer, object: Manifest): Manifest {
  const admit = admissionTo(api);
  const resource = { kind: object.kind } as Parameters<typeof admit>[0];
  return { ...admit(resource, object, null, true), kind: object.kind };
}

function thisMachine(): Machine {
  return { kernel: release(), architecture: arch(), cpus: cpus().length, memoryBytes: totalmem() };
}
