// The kernel's table of one family: read in the Plan's words, changed by Patches, each one transaction.
import { countOperations, type Item, type Operation } from "../../plan/nftables/diff.ts";
import type { NftFamily, NftTable } from "../../plan/nftables/types.ts";
import { tableName } from "../../plan/nftables/types.ts";
import { HostError } from "../error.ts";
import { tableFlag } from "../netlink/nftables.ts";
import { readTable } from "../netlink/ruleset.ts";
import { type NetlinkSocket, openSocket, type Place } from "../netlink/socket.ts";
import { transact } from "../netlink/transaction.ts";
import { decodeTable } from "./decode.ts";
import { type Encoded, encodePatch } from "./encode.ts";

/** What one Patch cost. */
export type Written = { readonly operations: number; readonly bytes: number };

/** A part of a Patch that the kernel refused, by its place in the Patch. */
export type RefusedPart = {
  readonly operation: Operation;
  readonly item: Item | null;
  readonly reason: string;
};

export type NftablesHostOptions = Place & {
  readonly family: NftFamily;
  /** The table belongs to this process: nobody else can change or flush it, and it outlives us. */
  readonly owned?: boolean;
};

export class NftablesHost {
  readonly family: NftFamily;
  readonly #socket: NetlinkSocket;
  readonly #place: Place;
  readonly #tableFlags: number;

  private constructor(socket: NetlinkSocket, { family, owned = false, ...place }: NftablesHostOptions) {
    this.family = family;
    this.#socket = socket;
    this.#place = place;
    this.#tableFlags = owned ? tableFlag.owner | tableFlag.persist : 0;
  }

  static async open(options: NftablesHostOptions): Promise<NftablesHost> {
    const { netns } = options;
    return new NftablesHost(await openSocket("netfilter", netns === undefined ? {} : { netns }), options);
  }

  /** Tells our own transactions from others' in events. */
  get portId(): number {
    return this.#socket.portId;
  }

  /** The table as it stands; null when there is none. Rules are recognised by what is wanted. */
  async read(want: NftTable, signal?: AbortSignal): Promise<NftTable | null> {
    const { contents } = await readTable(this.family, tableName, this.#place, signal);
    return contents === null ? null : decodeTable(contents, want);
  }

  /** All of a Patch or nothing of it. */
  async apply(patch: readonly Operation[], signal?: AbortSignal): Promise<Written> {
    if (patch.length === 0) return { operations: 0, bytes: 0 };
    const encoded = encodePatch(patch, { family: this.family, tableFlags: this.#tableFlags });
    const operations = encoded.map(({ operation }) => operation);
    try {
      const { bytes } = await transact(this.#socket, operations, {}, signal);
      return { operations: countOperations(patch), bytes: bytes.length };
    } catch (error) {
      if (error instanceof HostError && error.refusals.length > 0)
        throw new PatchRefused(error, patch, encoded);
      throw error;
    }
  }

  close(): Promise<void> {
    return this.#socket.close();
  }
}

/** A Patch was refused as a whole because of some of its parts. */
export class PatchRefused extends HostError {
  readonly parts: readonly RefusedPart[];

  constructor(cause: HostError, patch: readonly Operation[], encoded: readonly Encoded[]) {
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
        reason: text === "" ? errno : `${text} (${errno})`,
      };
    });
  }
}

/** Ranges take two kernel elements each; then only the operation is known. */
function itemOf(operation: Operation, element: number | undefined): Item | null {
  if (element === undefined || !("items" in operation)) return null;
  const isRange = operation.set.interval && operation.set.key.length === 1;
  return isRange ? null : (operation.items[element] ?? null);
}
