// Settings of each family as they are now: configuration, this Node, and the addresses on its interfaces.
import type { ValidConfig } from "../config/config.ts";
import { type NodeFacts, type Resolved, resolve } from "../config/resolve/resolve.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import { type LinkAddress, readAddresses, readLinks, watchAddresses } from "../host/netlink/route.ts";
import type { Place } from "../host/netlink/socket.ts";
import { type Address, type Family, families } from "../model/address.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { linkName } from "../plan/ipvs/types.ts";

export type LocalAddresses = Readonly<Record<Family, readonly Address[]>>;

/** Every address on this machine's interfaces, by family, sorted; addresses of Services are not the machine's. */
export async function readLocalAddresses(place: Place): Promise<LocalAddresses> {
  return (await lookAround(place)).addresses;
}

/** `services`: the link that ipvs mode keeps addresses of Services on; null: there is none. */
async function lookAround(
  place: Place,
): Promise<{ readonly addresses: LocalAddresses; readonly services: number | null }> {
  const links = await readLinks(place);
  const services = links.find(({ name }) => name === linkName)?.index ?? null;
  const all = (await readAddresses(place)).filter(({ link }) => link !== services);
  const of = (family: Family) =>
    [...new Set(all.filter((each) => each.family === family).map(({ address }) => address))].sort();
  return { addresses: { ipv4: of("ipv4"), ipv6: of("ipv6") }, services };
}

/** Calls back with the new addresses whenever they differ from before. */
export async function followLocalAddresses(
  place: Place,
  first: LocalAddresses,
  onChange: (addresses: LocalAddresses) => void,
  signal: AbortSignal,
): Promise<void> {
  let known: Awaited<ReturnType<typeof lookAround>> = { addresses: first, services: null };
  let reading = Promise.resolve();
  let isWaiting = false;
  const look = () => {
    if (isWaiting) return;
    isWaiting = true;
    reading = reading.then(async () => {
      isWaiting = false;
      const now = await lookAround(place).catch(() => known);
      const isSame = JSON.stringify(now.addresses) === JSON.stringify(known.addresses);
      known = now;
      if (!isSame) onChange(now.addresses);
    });
  };
  const changed = (_: unknown, { link }: LinkAddress) => {
    if (link !== known.services) look();
  };
  await watchAddresses({ changed, lost: look }, signal, place);
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

  /** What another configuration would mean on this node. */
  resolvedWith(config: ValidConfig): Resolved {
    return resolve(config, this.#facts);
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
