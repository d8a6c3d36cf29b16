// Settings of each family as they are now: configuration, this Node, and the addresses on its interfaces.

import type { ValidConfig } from "../config/config.ts";
import { type NodeFacts, type Resolved, resolve } from "../config/resolve/resolve.ts";
import type { FamilySettings } from "../config/resolve/settings.ts";
import type { LocalAddresses } from "../host/local-addresses.ts";
import { type Family, families } from "../model/address.ts";
import type { Snapshot } from "../model/snapshot.ts";

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
