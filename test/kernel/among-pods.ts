// A daemon on a node among pods and clients: created for each test of a file, and removed after it.
import { afterEach, beforeEach } from "vitest";
import type { KubeObject } from "../cluster.ts";
import { type Configuration, type Daemon, type Order, openSite, reasonNotToRun, type Site } from "./site.ts";
import { createWorld, type World } from "./world.ts";

export type AmongPods = {
  readonly world: World;
  readonly site: Site;
  /** Starts the daemon and waits for its first Syncs. */
  readonly started: (config: Configuration, order?: Order) => Promise<Daemon>;
  readonly stop: (daemon: Daemon) => Promise<void>;
  /** The packet-filter tables of both families. */
  readonly saved: () => string;
};

/** To be called while a suite is being described. */
export function daemonAmongPods(objects: readonly KubeObject[]): AmongPods {
  const reason = reasonNotToRun();
  let world: World;
  let site: Site;
  beforeEach(async ({ skip }) => {
    skip(reason !== null, reason ?? "");
    world = await createWorld();
    site = await openSite(world.node);
    await site.openApi();
    for (const object of objects) site.api.put(object);
  });
  afterEach(async () => {
    await site?.close();
    await world?.close();
  });
  return {
    get world() {
      return world;
    },
    get site() {
      return site;
    },
    async started(config, order) {
      const daemon = site.start({ ...order, config });
      await daemon.ready();
      return daemon;
    },
    async stop(daemon) {
      daemon.kill("SIGTERM");
      await daemon.ended();
    },
    saved: () => ["iptables-save", "ip6tables-save"].map((tool) => site.netns.run(tool)).join("\n"),
  };
}
