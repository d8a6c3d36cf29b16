// The kernel's table of one family: read into the Plan's types, changed by Patches, each one transaction.
import { quoted } from "../../model/problem.ts";
import { atOnce, inTurns, nextTurn } from "../../model/steps.ts";
import { countOperations, type Item, type Operation } from "../../plan/nftables/diff.ts";
import { type ElementKey, elementId, slotKey } from "../../plan/nftables/key.ts";
import type {
  BackendSlots,
  FoundTable,
  NftFamily,
  NftSet,
  NftTable,
  OnLookup,
} from "../../plan/nftables/types.ts";
import { tableName } from "../../plan/nftables/types.ts";
import { HostError } from "../error.ts";
import type { Element, Elements } from "../netlink/elements.ts";
import { type NftSet as KernelSet, setFlag } from "../netlink/nftables.ts";
import { readPackets } from "../netlink/packets.ts";
import { readCounters, readOneElement, readTable, readTables } from "../netlink/ruleset.ts";
import { type NetlinkSocket, openSocket, type Place } from "../netlink/socket.ts";
import { watchTables } from "../netlink/tableevents.ts";
import { transact } from "../netlink/transaction.ts";
import { type Commits, commitsIn, type Mark } from "./commits.ts";
import { decodeRemembered, decoderOf } from "./decode.ts";
import { destinationsInUse } from "./destinations.ts";
import { echoesInto } from "./echoes.ts";
import { encodeQuestion } from "./elements.ts";
import { type Encoded, encodePatch } from "./encode.ts";
import { canOwn, ownedFlags, ownershipOf } from "./ownership.ts";

/** What one Patch cost, and what counted elements that it deleted had counted, by `elementId`; absent: nothing is known. */
export type Written = {
  readonly operations: number;
  readonly bytes: number;
  readonly removed?: ReadonlyMap<string, number>;
};

/** An element of a set that counts; `slot` null: the set is no slot map. */
export type CountedElement = { readonly key: ElementKey; readonly slot: number | null };

/** A part of a Patch that the kernel refused, by its index in the Patch. */
export type RefusedPart = {
  readonly operation: Operation;
  readonly item: Item | null;
  /** `EBUSY`, `ENOENT`, … */
  readonly errno: string;
  readonly reason: string;
};

export type NftablesHostOptions = Place & {
  readonly family: NftFamily;
  /** Whether this process must own the table: no other can change or flush it, and it persists after exit. */
  readonly owned?: boolean;
};

/** Where Patches go: the kernel, or memory in tests. */
export type TableHost = {
  /** Whether tables that are added belong to this process alone. */
  readonly owned: boolean;
  /** Whether there is a table. */
  exists(signal?: AbortSignal): Promise<boolean>;
  /** The table as it is; null when there is none. Rules are recognised by comparison with the Plan, which is unfolded only then. */
  find(wanted: () => NftTable, signal?: AbortSignal): Promise<FoundTable | null>;
  /** Keys of the maps that lead to Services to which connections are open. Empty when they cannot be read. */
  destinationsInUse(signal?: AbortSignal): Promise<ReadonlySet<string>>;
  /** Applies a whole Patch or nothing. `plain`: a table that is added has no owner, even with `owned`. */
  apply(patch: readonly Operation[], signal?: AbortSignal, plain?: "plain"): Promise<Written>;
  /** Calls back when another process changed the table, until the signal aborts. */
  watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void>;
  /** What these elements have counted; null where there is none. */
  readPackets(
    set: NftSet,
    elements: readonly CountedElement[],
    signal?: AbortSignal,
  ): Promise<readonly (number | null)[]>;
  /** What the named counters of the table have counted. */
  readCounters(signal?: AbortSignal): Promise<ReadonlyMap<string, number>>;
  /** A moment in the history of all tables; null when it is unknown. */
  mark(signal?: AbortSignal): Promise<Mark | null>;
  /** Whether another process changed any table since then. */
  changedByOthersSince(mark: Mark | null, signal?: AbortSignal): Promise<boolean>;
  close(): Promise<void>;
};

export class NftablesHost implements TableHost {
  readonly family: NftFamily;
  readonly owned: boolean;
  readonly #socket: NetlinkSocket;
  readonly #place: Place;
  readonly #commits: Commits;

  private constructor(socket: NetlinkSocket, family: NftFamily, place: Place, owned: boolean) {
    this.family = family;
    this.owned = owned;
    this.#socket = socket;
    this.#place = place;
    this.#commits = commitsIn(place);
    this.#commits.portIds.add(socket.portId);
  }

  /** A table that cannot be owned here is plain: see `owned`. */
  static async open({ family, owned = false, netns }: NftablesHostOptions): Promise<NftablesHost> {
    const place = netns === undefined ? {} : { netns };
    const socket = await openSocket("netfilter", place);
    try {
      return new NftablesHost(socket, family, place, owned && (await canOwn(socket, family)));
    } catch (error) {
      await socket.close();
      throw error;
    }
  }

  /** Distinguishes our own transactions from others in events. */
  get portId(): number {
    return this.#socket.portId;
  }

  async exists(signal?: AbortSignal): Promise<boolean> {
    const tables = await readTables(this.#place, signal);
    return tables.some(({ family, name }) => family === this.family && name === tableName);
  }

  find(wanted: () => NftTable, signal?: AbortSignal): Promise<FoundTable | null> {
    return readTable(this.#which(signal), everySet, async (contents) => {
      const ownership = ownershipOf(contents.table, this.portId);
      if (ownership === "theirs") throw ownedByAnother(this.family, contents.table.owner);
      const want = wanted();
      await nextTurn();
      const decode = await inTurns(decoderOf(want));
      return {
        table: await inTurns(decode(contents)),
        ownership,
        remembered: decodeRemembered(contents, want),
      };
    });
  }

  async destinationsInUse(signal?: AbortSignal): Promise<ReadonlySet<string>> {
    try {
      return await destinationsInUse(this.family === "ip" ? "ipv4" : "ipv6", this.#place, signal);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      return new Set();
    }
  }

  /** The table alone; null when there is none. It is read while what is wanted is still made. */
  read(wanted: NftTable | Promise<NftTable>, signal?: AbortSignal): Promise<NftTable | null> {
    const decoder = Promise.resolve(wanted).then((want) => inTurns(decoderOf(want)));
    // The rejection reaches the caller through readTable.
    decoder.catch(() => {});
    return readTable(this.#which(signal), everySet, async (contents) => inTurns((await decoder)(contents)));
  }

  /**
   * The result of `walk` on the table; of large sets, only the elements that it queries are read. null when there is no table.
   * Rules are recognised by comparison with the table that `wanted` returns for chains of these names.
   */
  async walkLive<T>(
    wanted: (chains: readonly string[]) => NftTable,
    walk: (table: NftTable, onLookup: OnLookup) => T,
    signal?: AbortSignal,
  ): Promise<T | null> {
    const made = await readTable(this.#which(signal), isOfRanges, async (contents) => {
      const decode = atOnce(decoderOf(wanted(contents.chains.map(({ name }) => name))));
      const elements = new Map(contents.elements);
      const answered = new Set<string>();
      for (;;) {
        const table = atOnce(decode({ ...contents, elements }));
        const questions = new Map<string, Parameters<OnLookup>>();
        const result = walk(table, (...question) => {
          const [name, key, slot] = question;
          const id = elementId(name, slot === null ? key : slotKey(key, slot));
          if (!answered.has(id)) questions.set(id, question);
        });
        if (questions.size === 0) return { result };
        const found = new Map<string, Element[]>();
        for (const [id, [name, key, slot]] of questions) {
          answered.add(id);
          const element = await this.#element(table.sets.get(name), key, slot, signal);
          if (!found.has(name)) found.set(name, [...(elements.get(name)?.all() ?? [])]);
          if (element !== null) found.get(name)!.push(element);
        }
        for (const [name, all] of found) elements.set(name, listed(all));
      }
    });
    return made?.result ?? null;
  }

  #which(signal: AbortSignal | undefined) {
    return { family: this.family, name: tableName, place: this.#place, signal };
  }

  #element(set: NftSet | undefined, key: ElementKey, slot: number | null, signal: AbortSignal | undefined) {
    // Not one of our sets, and not decoded.
    if (set === undefined || set.key.length === 0) return null;
    const element = encodeQuestion(set, key, slot);
    return readOneElement(this.#socket, this.family, { table: tableName, set: set.name, element }, signal);
  }

  async apply(patch: readonly Operation[], signal?: AbortSignal, plain?: "plain"): Promise<Written> {
    if (patch.length === 0) return { operations: 0, bytes: 0 };
    const tableFlags = this.owned && plain === undefined ? ownedFlags : 0;
    const encoded = encodePatch(patch, { family: this.family, tableFlags });
    const operations = encoded.map(({ operation }) => operation);
    try {
      const removed = new Map<string, number>();
      const { bytes } = await this.#commits.counted(() =>
        transact(this.#socket, operations, {}, signal, echoesInto(removed, patch)),
      );
      const written = { operations: countOperations(patch), bytes: bytes.length };
      return removed.size === 0 ? written : { ...written, removed };
    } catch (error) {
      if (error instanceof HostError && error.refusals.length > 0)
        throw new PatchRefused(error, patch, encoded);
      throw error;
    }
  }

  watch(onForeignChange: (what: string) => void, signal: AbortSignal): Promise<void> {
    let touched: string | null = null;
    return watchTables(
      {
        changed: (change) => {
          if (change.table !== tableName) return;
          touched ??= `${change.verb} ${change.name}`;
        },
        committed: ({ process }) => {
          if (touched !== null) onForeignChange(`${quoted(process)} changed our table: ${touched}`);
          touched = null;
        },
        lost: () => onForeignChange("events of nf_tables were lost"),
      },
      signal,
      { own: [...this.#commits.portIds], family: this.family, ...this.#place },
    );
  }

  readPackets(
    set: NftSet,
    elements: readonly CountedElement[],
    signal?: AbortSignal,
  ): Promise<readonly (number | null)[]> {
    const questions = elements.map(({ key, slot }) => encodeQuestion(set, key, slot));
    const where = { table: tableName, set: set.name, elements: questions };
    return readPackets(this.#socket, this.family, where, signal);
  }

  async readCounters(signal?: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const counters = await readCounters(this.family, tableName, this.#place, signal);
    return new Map(counters.map(({ name, counter }) => [name, Number(counter.packets)]));
  }

  mark(signal?: AbortSignal): Promise<Mark | null> {
    return this.#commits.mark(this.#place, signal);
  }

  async changedByOthersSince(mark: Mark | null, signal?: AbortSignal): Promise<boolean> {
    const now = await this.mark(signal);
    if (mark === null || now === null) return true;
    return now.generation - mark.generation !== now.own - mark.own;
  }

  close(): Promise<void> {
    this.#commits.portIds.delete(this.portId);
    return this.#socket.close();
  }
}

/** A Patch was refused as a whole because of some of its parts. */
export class PatchRefused extends HostError {
  readonly parts: readonly RefusedPart[];

  constructor(cause: HostError, patch: readonly Operation[], encoded: readonly Pick<Encoded, "from">[]) {
    super("refused", cause.message, {
      cause,
      errno: cause.errno,
      text: cause.text,
      refusals: cause.refusals,
    });
    this.parts = cause.refusals.map(({ operation: index, element, errno, text }) => {
      const operation = patch[encoded[index]!.from]!;
      return {
        operation,
        item: itemOf(operation, element),
        errno,
        reason: text === "" ? errno : `${text} (${errno})`,
      };
    });
  }
}

function everySet(): boolean {
  return true;
}

function listed(elements: readonly Element[]): Elements {
  return {
    all: () => elements,
    *except() {
      yield;
      return elements;
    },
  };
}

/** Such sets are queried by range and not by key, like the anonymous maps of rules. */
function isOfRanges({ flags }: KernelSet): boolean {
  return (flags & (setFlag.interval | setFlag.anonymous)) !== 0;
}

function ownedByAnother(family: NftFamily, owner: number | undefined): HostError {
  const who = owner === undefined ? "" : ` (netlink port ${owner})`;
  return new HostError(
    "refused",
    `Cannot change table ${family} ${tableName}: it belongs to another process${who}`,
    { errno: "EPERM" },
  );
}

/** Ranges take two kernel elements each; then only the operation is known. */
function itemOf(operation: Operation, element: number | undefined): Item | null {
  if (element === undefined) return null;
  if (operation.kind === "add slots") return slotItem(operation.spreads, element);
  if (!("items" in operation)) return null;
  return operation.set.interval ? null : (operation.items[element] ?? null);
}

/** Element number n of all slots. */
function slotItem(spreads: readonly BackendSlots[], n: number): Item | null {
  let slot = n;
  for (const { key, backends } of spreads) {
    if (slot < backends.length) return { key, slot, data: backends[slot]!, comment: null };
    slot -= backends.length;
  }
  return null;
}
