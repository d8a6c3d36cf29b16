// The current settings of each family, from the configuration, this Node, and the addresses on its interfaces.

import type { ValidConfig } from "../config/config.ts";
import { type NodeFacts, type Resolved, resolve } from "../config/resolve/resolve.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import type { LocalAddresses } from "../host/local-addresses.ts";
import { type Address, type Cidr, contains, type Family, families } from "../model/address.ts";
import type { Snapshot } from "../model/snapshot.ts";

/** `of` returns the same object as long as nothing in it changed; routing compares by identity. */
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

  /** The settings that another configuration would have on this node. */
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
      if (routingText(settings[family]) === routingText(before[family])) settings[family] = before[family];
    }
    this.#resolved = { ...now, settings };
  }
}

/**
 * What routing depends on. An interface of a pod brings a link-local address, and every change of the settings routes all Services
 * again: those that `nodePortAddresses` does not list matter to none.
 */
function routingText(settings: FamilySettings): string {
  const { nodePortAddresses: places } = settings;
  const isListed = (address: Address) =>
    places.kind !== "all" && places.cidrs.some((cidr) => contains(cidr, address));
  const localAddresses = settings.localAddresses.filter(
    (address) => !contains(linkLocal, address) || isListed(address),
  );
  return JSON.stringify({ ...settings, localAddresses });
}

const linkLocal: Cidr = "fe80::/10";
