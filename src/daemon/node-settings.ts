// The current settings of each family, from the configuration, this Node, and the addresses on its interfaces.

import type { ValidConfig } from "../config/config.ts";
import { type NodeFacts, type Resolved, resolve } from "../config/resolve/resolve.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import type { LocalAddresses } from "../host/local-addresses.ts";
import { type Family, families } from "../model/address.ts";
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
      if (JSON.stringify(settings[family]) === JSON.stringify(before[family]))
        settings[family] = before[family];
    }
    this.#resolved = { ...now, settings };
  }
}
