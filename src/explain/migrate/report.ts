// Everything that a change of mode changes on a node: packets, habits and settings, with what to do about it.
import { effective, fold, unfold, type ValidConfig } from "../../config/config.ts";
import { withDefaults } from "../../config/defaults.ts";
import type { FileConfig, Path } from "../../config/file/fields.ts";
import type { ModeName } from "../../config/modes.ts";
import { families } from "../../model/address.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type HostFacts, nodeRoutes } from "../node-routes.ts";
import { type HabitChange, habitChanges } from "./habits.ts";
import { type PacketChange, packetChanges } from "./packets.ts";
import { type SettingChange, settingChanges } from "./settings.ts";

export type Migration = { readonly from: ModeName; readonly to: ModeName; readonly node: string };

export type Report = Migration & {
  readonly services: number;
  readonly packets: readonly PacketChange[];
  readonly habits: readonly HabitChange[];
  readonly settings: readonly SettingChange[];
};

export function reportOf(
  { from, to, node }: Migration,
  file: FileConfig,
  snapshot: Snapshot,
  facts: HostFacts = {},
): Report {
  const side = (mode: ModeName) => ({
    mode,
    routes: nodeRoutes(snapshot, node, configIn(mode, file), facts),
  });
  const [before, after] = [side(from), side(to)];
  const ports = families.flatMap((family) => [...snapshot[family].ports.values()]);
  return {
    from,
    to,
    node,
    services: new Set(ports.map(({ service }) => service)).size,
    packets: packetChanges(before, after),
    habits: habitChanges(from, to, configIn(from, file), ports),
    settings: settingChanges(from, to, file),
  };
}

/** The file of a configuration, where none was given: what it does not say of other modes is their default. */
export function fileOf(config: ValidConfig): FileConfig {
  const file = withDefaults(new Map(Object.entries(unfold(config)) as [Path, unknown][]));
  // What nftables mode makes of an empty list is no word of the user's.
  const isFilledIn = config.mode === "nftables" && file.nodePortAddresses?.join() === "primary";
  return isFilledIn ? { ...file, nodePortAddresses: [] } : file;
}

/** The same file with another mode: each mode reads its own block, and fills in its own defaults. */
function configIn(mode: ModeName, file: FileConfig): ValidConfig {
  const changed = { ...file, mode };
  return effective(changed, fold(changed)) as ValidConfig;
}
