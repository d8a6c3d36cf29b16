// Changes of nf_tables as data, and their encoding into one batch that the kernel takes as a whole or not at all.
import type { Codec } from "./attributes.ts";
import { type Element, elementListLimit, writeElement } from "./elements.ts";
import { addFlag, beginMessage, endMessage, flag } from "./message.ts";
import { beginNetfilter, type NfFamily, subsystem } from "./netfilter.ts";
import {
  type Chain,
  type Counter,
  codecs,
  counterObject,
  elementListAttribute,
  type NftSet,
  type Rule,
  type Table,
  type Verb,
  verbType,
} from "./nftables.ts";
import { Writer } from "./writer.ts";

type Named = { readonly family: NfFamily; readonly name: string };
type NamedInTable = Named & { readonly table: string };
type InSet = {
  readonly family: NfFamily;
  readonly table: string;
  readonly set: string;
  readonly setId?: number;
};

export type Operation =
  | { readonly kind: "addTable"; readonly table: Table }
  | { readonly kind: "deleteTable"; readonly table: Named }
  | { readonly kind: "addChain"; readonly chain: Chain }
  | { readonly kind: "flushChain"; readonly chain: NamedInTable }
  | { readonly kind: "deleteChain"; readonly chain: NamedInTable }
  /** At the end of its chain, or after the rule at `position`. */
  | { readonly kind: "addRule"; readonly rule: Rule }
  /** At the head of its chain, or before the rule at `position`. */
  | { readonly kind: "insertRule"; readonly rule: Rule }
  | { readonly kind: "replaceRule"; readonly rule: Rule & { readonly handle: number } }
  | { readonly kind: "deleteRule"; readonly rule: Omit<Rule, "expressions"> & { readonly handle: number } }
  | { readonly kind: "addSet"; readonly set: NftSet }
  | { readonly kind: "flushSet"; readonly set: NamedInTable }
  | { readonly kind: "deleteSet"; readonly set: NamedInTable }
  | { readonly kind: "addElements"; readonly to: InSet; readonly elements: Iterable<Element> }
  /** `echo`: the kernel answers with the elements as they were, with what they have counted. */
  | {
      readonly kind: "deleteElements";
      readonly from: InSet;
      readonly elements: Iterable<Element>;
      readonly echo?: boolean;
    }
  | { readonly kind: "addCounter"; readonly counter: Counter }
  | { readonly kind: "deleteCounter"; readonly counter: NamedInTable };

/** The bytes of a transaction, and which operation each of its messages belongs to. */
export type Batch = {
  readonly bytes: Uint8Array;
  readonly parts: readonly Part[];
};

type Part = {
  readonly operation: number;
  readonly at: number;
  /** Index of the first element in this message, for operations on elements. */
  readonly firstElement: number;
};

export type TransactionOptions = {
  /** Refuse, as `interrupted`, unless nothing has changed since this generation. */
  readonly generation?: number;
};

const BATCH_BEGIN = 0x10;
const BATCH_END = 0x11;
const GENERATION = 1;

/** Message k of the batch has sequence number k, from 1: the same operations give the same bytes. */
export function encode(operations: readonly Operation[], options: TransactionOptions = {}): Batch {
  const encoder = new BatchEncoder(options.generation);
  for (const [index, operation] of operations.entries()) encoder.add(index, operation);
  return encoder.finish();
}

class BatchEncoder {
  readonly #out = new Writer(64 * 1024);
  readonly #parts: Part[] = [];
  #operation = 0;
  #firstElement = 0;

  constructor(generation: number | undefined) {
    const at = this.#beginMarker(BATCH_BEGIN, 1);
    if (generation !== undefined) {
      const attribute = this.#out.begin(GENERATION);
      this.#out.u32be(generation);
      this.#out.end(attribute);
    }
    endMessage(this.#out, at);
  }

  add(index: number, operation: Operation): void {
    this.#operation = index;
    this.#firstElement = 0;
    if (operation.kind === "addElements") {
      this.#elements("newElements", flag.create, operation.to, operation.elements);
    } else if (operation.kind === "deleteElements") {
      const flags = operation.echo ? flag.echo : 0;
      this.#elements("delElements", flags, operation.from, operation.elements);
    } else {
      const { verb, flags, family, write } = messageOf(operation, index + 1);
      const at = this.#begin(verb, flags, family);
      write(this.#out);
      endMessage(this.#out, at);
    }
  }

  // The last message requests an acknowledgement, so that no response is never treated as success.
  finish(): Batch {
    const last = this.#parts.at(-1);
    if (last !== undefined) addFlag(this.#out, last.at, flag.acknowledge);
    endMessage(this.#out, this.#beginMarker(BATCH_END, this.#parts.length + 2));
    return { bytes: this.#out.bytes(), parts: this.#parts };
  }

  #elements(verb: Verb, flags: number, target: InSet, elements: Iterable<Element>): void {
    const out = this.#out;
    let message = -1;
    let list = 0;
    let index = 0;
    for (const element of elements) {
      if (message >= 0 && out.length - list > elementListLimit) {
        out.end(list);
        endMessage(out, message);
        message = -1;
      }
      if (message < 0) {
        this.#firstElement = index;
        message = this.#begin(verb, flags, target.family);
        codecs.elements.write(out, target);
        list = out.nest(elementListAttribute);
      }
      writeElement(out, element);
      index++;
    }
    if (message < 0) return;
    out.end(list);
    endMessage(out, message);
  }

  #begin(verb: Verb, flags: number, family: NfFamily): number {
    const sequence = this.#parts.length + 2;
    const at = beginNetfilter(this.#out, verbType(verb), flag.request | flags, sequence, family);
    this.#parts.push({ operation: this.#operation, at, firstElement: this.#firstElement });
    return at;
  }

  #beginMarker(type: number, sequence: number): number {
    const at = beginMessage(this.#out, type, flag.request, sequence);
    this.#out.u8(0);
    this.#out.u8(0);
    this.#out.u16be(subsystem.nftables);
    return at;
  }
}

type SingleMessage = {
  readonly verb: Verb;
  readonly flags: number;
  readonly family: NfFamily;
  readonly write: (out: Writer) => void;
};

type OnElements = Extract<Operation, { readonly elements: unknown }>;

function messageOf(operation: Exclude<Operation, OnElements>, id: number): SingleMessage {
  switch (operation.kind) {
    case "addTable":
      return message("newTable", flag.create, codecs.table, unplaced(operation.table));
    case "deleteTable":
      return message("delTable", 0, codecs.table, operation.table);
    case "addChain":
      return message("newChain", flag.create, codecs.chain, unplaced(operation.chain));
    case "flushChain": {
      const { family, table, name } = operation.chain;
      return message("delRule", 0, codecs.rule, { family, table, chain: name });
    }
    case "deleteChain":
      return message("delChain", 0, codecs.chain, operation.chain);
    case "addRule":
      return message("newRule", flag.create | flag.append, codecs.rule, unplaced(operation.rule));
    case "insertRule":
      return message("newRule", flag.create, codecs.rule, unplaced(operation.rule));
    case "replaceRule":
      return message("newRule", flag.replace, codecs.rule, operation.rule);
    case "deleteRule":
      return message("delRule", 0, codecs.rule, operation.rule);
    case "addSet":
      return message("newSet", flag.create, codecs.set, {
        id,
        ...unplaced(operation.set),
      });
    case "flushSet": {
      const { family, table, name } = operation.set;
      return message("delElements", 0, codecs.elements, { family, table, set: name });
    }
    case "deleteSet":
      return message("delSet", 0, codecs.set, operation.set);
    case "addCounter":
      return message("newObject", flag.create, codecs.counter, unplaced(operation.counter));
    case "deleteCounter":
      return message("delObject", 0, codecs.counter, { type: counterObject, ...operation.counter });
  }
}

function message<T>(
  verb: Verb,
  flags: number,
  codec: Codec<T>,
  object: Partial<T> & { readonly family: NfFamily },
): SingleMessage {
  return { verb, flags, family: object.family, write: (out) => codec.write(out, object as unknown as T) };
}

// A handle identifies an object in one kernel: it is left out when an object that was read is added elsewhere.
function unplaced<T extends { readonly handle?: number; readonly owner?: number }>(
  object: T,
): Omit<T, "handle" | "owner"> {
  const { handle: _handle, owner: _owner, ...rest } = object;
  return rest;
}
