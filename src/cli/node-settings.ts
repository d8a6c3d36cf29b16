// Settings of each family as they are now: configuration, this Node, and the addresses on its interfaces.
import type { ValidConfig } from "../config/config.ts";
import { type NodeFacts, type Resolved, resolve } from "../config/resolve.ts";
import type { FamilySettings } from "../config/settings.ts";
import { readAddresses, watchAddresses } from "../host/netlink/route.ts";
import type { Place } from "../host/netlink/socket.ts";
import { type Address, type Family, families } from "../model/address.ts";
import type { Snapshot } from "../model/snapshot.ts";

export type LocalAddresses = Readonly<Record<Family, readonly Address[]>>;

/** Every address on this machine's interfaces, by family, sorted. */
export async function readLocalAddresses(place: Place): Promise<LocalAddresses> {
  const all = await readAddresses(place);
  const of = (family: Family) =>
    [...new Set(all.filter((each) => each.family === family).map(({ address }) => address))].sort();
  return { ipv4: of("ipv4"), ipv6: of("ipv6") };
}

/** Calls back with the new addresses whenever they differ from before. */
export async function followLocalAddresses(
  place: Place,
  first: LocalAddresses,
  onChange: (addresses: LocalAddresses) => void,
  signal: AbortSignal,
): Promise<void> {
  let known = first;
  let reading = Promise.resolve();
  const look = () => {
    reading = reading.then(async () => {
      const now = await readLocalAddresses(place).catch(() => known);
      if (JSON.stringify(now) === JSON.stringify(known)) return;
      known = now;
      onChange(now);
    });
  };
  await watchAddresses({ changed: look, lost: look }, signal, place);
}

/** The same object as long as nothing in it changed, which is what routing goes by. */
export class NodeSettings {
  #config: ValidConfig;
  #facts: NodeFacts;
  #resolved: Resolved;

  constructor(config: ValidConfig, facts: NodeFacts) {
    this.#config = config;
    this.#facts = facts;
    this.#resolved = resolve(config, facts);
  }

  /** The configuration in force. */
  get config(): ValidConfig {
    return this.#config;
  }

  setConfig(config: ValidConfig): void {
    this.#config = config;
    this.#change(this.#facts);
  }

  get resolved(): Resolved {
    return this.#resolved;
  }

  setLocalAddresses(localAddresses: LocalAddresses): void {
    this.#change({ ...this.#facts, localAddresses });
  }

  of(family: Family, snapshot: Snapshot): FamilySettings {
    const zone = snapshot.node?.zone ?? this.#facts.zone;
    if (zone !== this.#facts.zone) this.#change({ ...this.#facts, zone });
    return this.#resolved.settings[family];
  }

  #change(facts: NodeFacts): void {
    const before = this.#resolved.settings;
    this.#facts = facts;
    const now = resolve(this.#config, facts);
    const settings = { ...now.settings };
    for (const family of families) {
      if (JSON.stringify(settings[family]) === JSON.stringify(before[family]))
        settings[family] = before[family];
    }
    this.#resolved = { ...now, settings };
  }
}
