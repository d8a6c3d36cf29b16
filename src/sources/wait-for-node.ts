// Start-up waits for this Node: until the cluster responds, then for a limited time for its addresses and pod networks.
import type { ClusterNode } from "../model/snapshot.ts";
import type { NodeEvent, Source } from "./source.ts";
import type { Clock } from "./world.ts";

/** How long to wait for each, in milliseconds. */
export type NodeTimeouts = { readonly addresses: number; readonly podCIDRs: number };

export const kubeProxyTimeouts: NodeTimeouts = { addresses: 30_000, podCIDRs: 300_000 };
/** For files: their contents are complete when they are read. */
export const noTimeouts: NodeTimeouts = { addresses: 0, podCIDRs: 0 };

export type FoundNode = {
  /** null: the cluster has no such Node. */
  readonly node: ClusterNode | null;
  /** What the cluster did not provide in time. */
  readonly missing: "nothing" | "node" | "addresses" | "podCIDRs";
};

/** What is waited for now, and the time limit; null: none. */
export type ReportWait = (what: "node" | "addresses" | "podCIDRs", withinMs: number | null) => void;

/** Waits for pod networks only when they are needed (detectLocalMode NodeCIDR). Rejects when aborted. */
export async function waitForNode(
  source: Pick<Source, "nodeEvents">,
  needs: { readonly podCIDRs: boolean },
  clock: Clock,
  signal: AbortSignal,
  report: ReportWait,
  timeouts = kubeProxyTimeouts,
): Promise<FoundNode> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort, { once: true });
  const watching = new Watching(clock);
  const followed = (async () => {
    for await (const event of source.nodeEvents(stop.signal)) watching.see(event);
  })();
  // A Source that fails ends the wait.
  const ended = followed.then(() => Promise.reject(new Error("Cannot wait for the Node: aborted")));
  try {
    return await Promise.race([found(watching, needs.podCIDRs, report, timeouts), ended]);
  } finally {
    signal.removeEventListener("abort", abort);
    stop.abort();
    watching.stop();
    await followed.catch(() => {});
  }
}

async function found(
  watching: Watching,
  needPodCIDRs: boolean,
  report: ReportWait,
  timeouts: NodeTimeouts,
): Promise<FoundNode> {
  report("node", null);
  await watching.until(() => watching.seen);
  const hasAddresses = () => (watching.node?.addresses.length ?? 0) > 0;
  const hasPodCIDRs = () => (watching.node?.podCIDRs.length ?? 0) > 0;
  if (!hasAddresses()) report("addresses", timeouts.addresses);
  await watching.until(hasAddresses, timeouts.addresses);
  if (needPodCIDRs) {
    if (!hasPodCIDRs()) report("podCIDRs", timeouts.podCIDRs);
    await watching.until(hasPodCIDRs, timeouts.podCIDRs);
  }
  const { node } = watching;
  if (node === null) return { node, missing: "node" };
  if (needPodCIDRs && !hasPodCIDRs()) return { node, missing: "podCIDRs" };
  return { node, missing: hasAddresses() ? "nothing" : "addresses" };
}

class Watching {
  node: ClusterNode | null = null;
  seen = false;
  readonly #clock: Clock;
  #check = () => {};
  #cancel = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  see(event: NodeEvent): void {
    this.seen = true;
    this.node = event.kind === "present" ? event.node : null;
    this.#check();
  }

  /** Resolves when the condition holds or the time is up. */
  until(isSo: () => boolean, withinMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.stop();
        resolve();
      };
      this.#check = () => isSo() && done();
      if (withinMs !== undefined) this.#cancel = this.#clock.after(withinMs, done);
      this.#check();
    });
  }

  stop(): void {
    this.#cancel();
    this.#check = () => {};
  }
}
