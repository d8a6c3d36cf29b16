// The network of the playground: nodes, outside clients, and pods that are attached and detached.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Native, native } from "../../src/host/netlink/native.ts";
import { namespaceName, namespacePath } from "../../src/inspect/playgrounds.ts";
import type { Family } from "../../src/model/address.ts";
import { CannotStart } from "../cannot-start.ts";
import { type EchoPort, type Inside, startEcho } from "./echo.ts";
import {
  foundationCommands,
  type NodePlace,
  nodePlaces,
  podAddresses,
  podCommands,
  routerSysctls,
} from "./layout.ts";
import { addNamespaces, ip, removeNamespace } from "./namespaces.ts";

/** An attached pod. */
export type Attached = {
  readonly node: NodePlace;
  readonly addresses: Readonly<Record<Family, string>>;
};

type Pod = Attached & { readonly index: number; readonly netns: string; readonly stop: () => void };

export class Network {
  readonly #native: Native;
  readonly #pods = new Map<string, Pod>();
  #links = 0;

  private constructor(calls: Native) {
    this.#native = calls;
  }

  static async open(): Promise<Network> {
    const network = new Network(await native());
    const labels = ["lan", "outside", ...nodePlaces.map(({ name }) => name)];
    addNamespaces(labels.map((label) => namespaceName(label)));
    for (const label of labels) network.inside(label)(setRouterSysctls);
    ip(foundationCommands());
    return network;
  }

  /** Runs synchronous code in a namespace: `node-a`, `outside`, or `namespace.name` of a pod. */
  inside(label: string): Inside {
    return (action) => this.#native.inside(namespacePath(namespaceName(label)), action);
  }

  /** A socket that listens on 127.0.0.1 of a namespace, reachable only from there. */
  listenOnLoopback(label: string, port: number): number {
    return this.inside(label)(() => this.#native.listenOnLoopback(port));
  }

  attach(label: string, pod: string, node: NodePlace, ports: readonly EchoPort[]): Attached {
    const taken = new Set(
      [...this.#pods.values()].filter((each) => each.node === node).map(({ index }) => index),
    );
    let index = 1;
    while (taken.has(index)) index++;
    if (index > 250) throw new CannotStart(`cannot attach pod ${pod}: ${node.name} has no address left`);
    const netns = namespaceName(label);
    addNamespaces([netns]);
    try {
      ip(podCommands(netns, node, `pod${++this.#links}`, index));
    } catch (error) {
      removeNamespace(netns);
      throw error;
    }
    const addresses = podAddresses(node, index);
    const who = { pod, node: node.name, addresses };
    const attached = { node, addresses, index, netns, stop: startEcho(who, ports, this.inside(label)) };
    this.#pods.set(label, attached);
    return attached;
  }

  detach(label: string): void {
    const pod = this.#pods.get(label);
    if (pod === undefined) return;
    this.#pods.delete(label);
    pod.stop();
    removeNamespace(pod.netns);
  }

  close(): void {
    for (const label of [...this.#pods.keys()]) this.detach(label);
    for (const label of ["outside", ...nodePlaces.map(({ name }) => name), "lan"])
      removeNamespace(namespaceName(label));
  }
}

/** Skips sysctls that the kernel does not have. */
function setRouterSysctls(): void {
  for (const [name, value] of routerSysctls) {
    const file = join("/proc/sys", name);
    if (existsSync(file)) writeFileSync(file, value);
  }
}
