// The nftables mode at work on the node of the world, without a daemon around it.
import { families } from "../../src/model/address.ts";
import { type NftablesDriver, openNftables } from "../../src/modes/nftables/host/driver.ts";
import type { KubeObject } from "../cluster.ts";
import { routesFor } from "../scenario-routes.ts";
import type { ScenarioSettings } from "../scenarios.ts";
import type { World } from "./world.ts";

export type NftablesNode = {
  readonly drivers: readonly NftablesDriver[];
  /** How many differences between kernel and Plan there are. */
  differences(): Promise<number>;
  /** An orderly end. */
  close(): Promise<void>;
};

/** Resolves when both families serve the objects. */
export async function startNftables(
  world: World,
  objects: readonly KubeObject[],
  settings: ScenarioSettings,
  owned = false,
): Promise<NftablesNode> {
  const { signal } = new AbortController();
  const drivers = await Promise.all(
    families.map(async (family) => {
      const driver = await openNftables({
        family: family === "ipv4" ? "ip" : "ip6",
        netns: world.node.path,
        owned,
      });
      await driver.sync(routesFor(objects, settings, "nftables", family), signal);
      return driver;
    }),
  );
  return {
    drivers,
    differences: async () => {
      const found = await Promise.all(drivers.map((driver) => driver.verify(signal)));
      return found.reduce((sum, { differences }) => sum + differences, 0);
    },
    close: async () => void (await Promise.all(drivers.map((driver) => driver.close()))),
  };
}
