// Everything that a change of mode changes on a node: packets, habits and settings, with what to do about it.
import { effective, fold, unfoldGiven, type ValidConfig } from "../../config/config.ts";
import { withDefaults } from "../../config/defaults.ts";
import type { FileConfig, Path } from "../../config/file/fields.ts";
import { type ModeName, modes } from "../../config/modes.ts";
import { families } from "../../model/address.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { Mode } from "../../modes/mode.ts";
import { type HostFacts, nodeRoutes } from "../node-routes.ts";
import { type BehaviorChange, behaviorChanges } from "./behavior-changes.ts";
import { type PacketChange, packetChanges } from "./packets.ts";
import { type SettingChange, settingChanges } from "./settings.ts";

export type Migration = { readonly from: Mode; readonly to: Mode; readonly node: string };

export type Report = {
  readonly from: ModeName;
  readonly to: ModeName;
  readonly node: string;
  readonly services: number;
  readonly packets: readonly PacketChange[];
  readonly habits: readonly BehaviorChange[];
  readonly settings: readonly SettingChange[];
};

export function reportOf(
  { from, to, node }: Migration,
  file: FileConfig,
  snapshot: Snapshot,
  facts: HostFacts = {},
): Report {
  const side = (mode: Mode) => ({
    mode,
    routes: nodeRoutes(snapshot, node, configIn(mode.name, file), facts),
  });
  const [before, after] = [side(from), side(to)];
  const ports = families.flatMap((family) => [...snapshot[family].ports.values()]);
  return {
    from: from.name,
    to: to.name,
    node,
    services: new Set(ports.map(({ service }) => service)).size,
    packets: packetChanges(before, after),
    habits: behaviorChanges(from, to, configIn(from.name, file), ports),
    settings: settingChanges(from.name, to.name, file),
  };
}

/** The file of a configuration, where none was given: what it does not set for other modes is their default. */
export function fileOf(config: ValidConfig): FileConfig {
  const file = withDefaults(new Map(Object.entries(unfoldGiven(config)) as [Path, unknown][]));
  // The mode's default for an empty list was not set by the user.
  const filledIn = modes[config.mode].nodePortAddresses;
  const isFilledIn = filledIn !== null && file.nodePortAddresses?.join() === filledIn.join();
  return isFilledIn ? { ...file, nodePortAddresses: [] } : file;
}

/** The same file with another mode: each mode reads its own block, and fills in its own defaults. */
function configIn(mode: ModeName, file: FileConfig): ValidConfig {
  const changed = { ...file, mode };
  return effective(changed, fold(changed)) as ValidConfig;
}
