// Which tracked flows of a protocol are stale in one family: UDP flows always, TCP connections to endpoints that are gone when asked.
import { isLoopback } from "../model/address.ts";
import type { FlowView } from "../model/flow.ts";
import { endpointKey, type PortKey, type ServicePort } from "../model/snapshot.ts";
import { GoneFrontends, type SuspectFlows, usesGoneFrontend } from "./gone-frontends.ts";
import type { Routes } from "./routes.ts";
import { isStale, portAt } from "./staleflows.ts";

export type StaleFlows = {
  /** IP protocol number. */
  readonly protocol: number;
  /** Call it with all keys that changed since the last time. Returns whether flows may have become stale. */
  note(routes: Routes, changed: ReadonlySet<PortKey>): boolean;
  /** Call it before a pass over the tracked flows. */
  begin(routes: () => Routes): StalePass;
};

export type StalePass = {
  /** Where stale flows may be; null: anywhere. */
  readonly suspects: readonly SuspectFlows[] | null;
  /** By the Routes of each moment. */
  readonly select: (flow: FlowView) => boolean;
  /** What a pass that was not complete has left is suspected again. */
  readonly ended: (isComplete: boolean) => void;
};

/** UDP flows, as kube-proxy removes them, and those of Frontends that are gone. */
export function staleUdp(): StaleFlows {
  const frontends = new GoneFrontends();
  return {
    protocol: 17,
    note: (routes, changed) => frontends.note(routes, changed),
    begin(routes) {
      const gone = new Set(frontends.all);
      const suspects = frontends.takeSuspects();
      return {
        suspects,
        select: (flow) => isStale(flow, routes()) || usesGoneFrontend(flow, gone, routes()),
        ended(isComplete) {
          if (isComplete) frontends.forget(gone);
          else frontends.suspect(suspects);
        },
      };
    },
  };
}

/**
 * TCP connections to endpoints that no ServicePort has any more. A pod that terminates stays in its EndpointSlice until it is gone, so
 * that it can end its connections; a pod that only lost the labels of its Services counts as gone.
 */
export function deadTcp(): StaleFlows {
  const endpoints = new TcpEndpoints();
  return {
    protocol: 6,
    note: (routes, changed) => endpoints.note(routes, changed),
    begin: (routes) => ({
      suspects: null,
      select: (flow) => isOpen(flow) && isDead(flow, routes(), endpoints),
      ended: () => {},
    }),
  };
}

function isOpen({ state }: FlowView): boolean {
  return state !== "TIME_WAIT" && state !== "CLOSE";
}

function isDead(flow: FlowView, routes: Routes, endpoints: TcpEndpoints): boolean {
  const { destination, destinationPort: port, replySource, replySourcePort } = flow;
  if (replySource === destination && replySourcePort === port) return false;
  const byAddress = portAt(routes, `${destination}/tcp/${port}`);
  const holder = byAddress ?? portAt(routes, `node/tcp/${port}`);
  if (holder === undefined || (byAddress === undefined && !isLocal(destination, routes))) return false;
  const key = endpointKey({ address: replySource, port: replySourcePort });
  return !endpoints.has(key) && !keysOf(holder).has(key);
}

function isLocal(address: string, { settings }: Routes): boolean {
  return isLoopback(address) || settings.localAddresses.includes(address);
}

/** All endpoints of TCP ports, with the number of ServicePorts that have each. */
class TcpEndpoints {
  readonly #counts = new Map<string, number>();
  readonly #ports = new Map<PortKey, ServicePort>();

  /** Returns whether an endpoint is in no ServicePort any more; also for the first ports, whose flows are from before. */
  note({ servicePorts }: Routes, changed: ReadonlySet<PortKey>): boolean {
    const left = new Set<string>();
    const isFirst = this.#ports.size === 0;
    for (const key of changed) {
      const before = this.#ports.get(key);
      const port = servicePorts.get(key);
      const now = port?.protocol === "tcp" ? port : undefined;
      if (before?.endpoints === now?.endpoints && now !== undefined) continue;
      for (const name of now === undefined ? none : keysOf(now))
        this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
      for (const name of before === undefined ? none : keysOf(before)) if (this.#drop(name)) left.add(name);
      if (now === undefined) this.#ports.delete(key);
      else this.#ports.set(key, now);
    }
    return (isFirst && this.#ports.size > 0) || [...left].some((name) => !this.has(name));
  }

  has(name: string): boolean {
    return this.#counts.has(name);
  }

  #drop(name: string): boolean {
    const count = this.#counts.get(name)! - 1;
    if (count > 0) this.#counts.set(name, count);
    else this.#counts.delete(name);
    return count === 0;
  }
}

const none: ReadonlySet<string> = new Set();

function keysOf(port: ServicePort): ReadonlySet<string> {
  let keys = known.get(port);
  if (keys === undefined) {
    keys = new Set(port.endpoints.map(endpointKey));
    known.set(port, keys);
  }
  return keys;
}

const known = new WeakMap<ServicePort, ReadonlySet<string>>();
