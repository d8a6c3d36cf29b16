// Watches committed changes of nf_tables, and reports which socket made them.
import { attributes, type Codec, field, optional, text } from "./attributes.ts";
import { listen } from "./listen.ts";
import type { Message } from "./message.ts";
import { familyAt, type NfFamily, netfilterHeaderLength } from "./netfilter.ts";
import { codecs, type Generation, type Verb, verbOf, verbType } from "./nftables.ts";
import type { Place } from "./socket.ts";

/** One object that came, changed or went. A rule is named by its chain, elements by their set. */
export type TableChange = {
  readonly verb: Verb;
  readonly family: NfFamily;
  readonly table: string;
  readonly name: string;
  /** Port id of the socket that made the change. */
  readonly portId: number;
};

export type TableListener = {
  readonly changed: (change: TableChange) => void;
  /** A transaction is complete; everything that `changed` reported since the last one belongs to it. */
  readonly committed: (generation: Generation & { readonly portId: number }) => void;
  /** Events were dropped: anything may have changed. */
  readonly lost: () => void;
};

export type WatchOptions = Place & {
  /** The port ids of our own sockets: nothing is reported of their transactions. */
  readonly own?: readonly number[];
  /** Changes of other families are not reported, and cost little: the load of one family is thousands of events. */
  readonly family?: NfFamily;
};

const nftablesGroup = 7;

/** Reports until the signal is aborted. */
export function watchTables(
  listener: TableListener,
  signal: AbortSignal,
  { own = [], family, ...place }: WatchOptions = {},
): Promise<void> {
  const visit = (from: Buffer, message: Message) => {
    const verb = verbOf(message.type);
    if (verb === "newGeneration") {
      const generation = codecs.generation.read(from, message.start + netfilterHeaderLength, message.end);
      if (generation !== undefined) listener.committed({ ...generation, portId: message.portId });
    } else if (verb !== undefined && (family === undefined || familyAt(from, message.start) === family)) {
      const change = changeOf(verb, from, message);
      if (change !== undefined) listener.changed(change);
    }
  };
  const options = { ...place, ignore: own };
  return listen("netfilter", [nftablesGroup], { visit, lost: listener.lost }, signal, options);
}

/** The same of transactions alone, whatever they change: a large load is thousands of events, and few of these. */
export function watchTransactions(
  listener: Pick<TableListener, "committed" | "lost">,
  signal: AbortSignal,
  place: Place = {},
): Promise<void> {
  const visit = (from: Buffer, message: Message) => {
    const generation = codecs.generation.read(from, message.start + netfilterHeaderLength, message.end);
    if (generation !== undefined) listener.committed({ ...generation, portId: message.portId });
  };
  const options = { ...place, only: verbType("newGeneration") };
  return listen("netfilter", [nftablesGroup], { visit, lost: listener.lost }, signal, options);
}

type Names = { readonly table: string; readonly name?: string };

const ofTable: Codec<Names> = attributes({ table: field(1, text) });
const ofChain: Codec<Names> = attributes({ table: field(1, text), name: optional(3, text) });
const ofOther: Codec<Names> = attributes({ table: field(1, text), name: optional(2, text) });

function changeOf(verb: Verb, from: Buffer, message: Message): TableChange | undefined {
  const codec = verb.endsWith("Table") ? ofTable : verb.endsWith("Chain") ? ofChain : ofOther;
  const names = codec.read(from, message.start + netfilterHeaderLength, message.end);
  const family = familyAt(from, message.start);
  if (names === undefined || family === undefined) return undefined;
  return { verb, family, table: names.table, name: names.name ?? names.table, portId: message.portId };
}
