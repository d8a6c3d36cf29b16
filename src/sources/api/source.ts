// The Kubernetes API as a Source: four reflectors update one Cluster, from which Snapshots are made.
import { Cluster } from "../../manifests/cluster.ts";
import { type Kind, kinds } from "../../manifests/objects.ts";
import { Notifier } from "../../model/notifier.ts";
import { inTurns, nextTurn } from "../../model/steps.ts";
import { NodeLog } from "../node-log.ts";
import type { ResourceStatus, Source } from "../source.ts";
import type { World } from "../world.ts";
import type { ApiClient } from "./client.ts";
import type { Sink } from "./follower.ts";
import { OutageGate } from "./outage-gate.ts";
import { Reflector, type ReflectorFigures, reflectorFigures } from "./reflector.ts";
import { type Item, watchedResources } from "./resources.ts";

export type ApiSourceParts = {
  readonly client: ApiClient;
  readonly nodeName: string;
  readonly world: World;
  readonly figures?: ReflectorFigures;
};

/** Works until `life` aborts. The Node is watched from its first use on, the rest from the first request for Snapshots. */
export function apiSource(
  { client, nodeName, world, figures = reflectorFigures }: ApiSourceParts,
  life: AbortSignal,
): Source {
  const cluster = new Cluster(nodeName);
  const nodes = new NodeLog();
  const notifier = new Notifier();
  const outage = new OutageGate(world);
  const resources = watchedResources(nodeName);
  const settled = new Set<Kind>();
  const reflectors = new Map<Kind, Reflector>();
  let bug: unknown;
  life.addEventListener("abort", () => notifier.notify(), { once: true });

  return {
    async *snapshots(signal) {
      for (const kind of kinds) start(kind);
      let first = true;
      do {
        if (!isSettled() || !(first || cluster.pending)) continue;
        first = false;
        while (cluster.joinSome()) await nextTurn();
        yield cluster.take();
      } while (await woken(signal));
    },
    nodeEvents(signal) {
      start("Node");
      return nodes.events(signal);
    },
    events: () => cluster.events,
    status() {
      const entries = [...reflectors].map(([kind, reflector]) => [kind, reflector.status] as const);
      const known: Partial<Record<Kind, ResourceStatus>> = Object.fromEntries(entries);
      const server = client.server === null ? {} : { server: client.server };
      return { ...server, synced: isSettled(), resources: known };
    },
  };

  function start(kind: Kind): void {
    if (reflectors.has(kind)) return;
    const resource = resources[kind];
    const onProgress = () => {
      const { synced, refused } = reflector.status;
      // Do not wait for resources that a cluster may not serve or may not let us read.
      if (synced || (resource.optional && refused)) settled.add(kind);
      notifier.notify();
    };
    const sink = sinkFor(kind);
    const reflector = new Reflector({ client, resource, sink, world, outage, figures, onProgress });
    reflectors.set(kind, reflector);
    reflector.run(life).catch((error: unknown) => {
      bug = error;
      notifier.notify();
    });
  }

  function isSettled(): boolean {
    return settled.size === kinds.length;
  }

  /** Whether there may be something new; false at the end. */
  async function woken(signal: AbortSignal): Promise<boolean> {
    await notifier.notified(signal).catch(() => {});
    if (bug !== undefined) throw bug;
    return !signal.aborted && !life.aborted;
  }

  function sinkFor(kind: Kind): Sink {
    const received = ({ version }: Item) => ({ version, at: world.clock.wall() });
    return {
      async replace(items) {
        const at = world.clock.wall();
        const steps = cluster.replaceInSteps(
          kind,
          items.map(({ reading }) => reading),
          (index) => ({ version: index === null ? "" : items[index]!.version, at }),
        );
        await inTurns(steps);
        if (kind === "Node") seeNode(items.find(isThisNode) ?? null);
      },
      set(item) {
        cluster.put(item.reading, received(item));
        if (isThisNode(item)) seeNode(item);
        notifier.notify();
      },
      gone(item) {
        const { namespace, name } = item.reading.who;
        cluster.remove(kind, namespace, name, received(item));
        if (isThisNode(item)) nodes.see(null, "");
        notifier.notify();
      },
    };
  }

  /** A server that ignores the selector sends other Nodes too. */
  function isThisNode({ reading: { who } }: Item): boolean {
    return who.kind === "Node" && who.name === nodeName;
  }

  function seeNode(item: Item | null): void {
    const value = item?.reading.kind === "Node" ? item.reading.parsed.value : null;
    // A Node that cannot be read is reported as a Problem; its last state is kept.
    if (item === null || value !== null) nodes.see(value, item?.uid ?? "");
  }
}
