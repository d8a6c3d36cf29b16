// A Patch as kernel operations; every kernel operation refers to its operation of the Patch.
import type { Operation } from "../../plan/nftables/diff.ts";
import {
  type Chain,
  dynamicSetSize,
  isSlotMap,
  type NftFamily,
  type NftSet,
  type Part,
  tableComment,
  tableName,
} from "../../plan/nftables/types.ts";
import type { Operation as KernelOperation } from "../netlink/batch.ts";
import { hostU32Bytes } from "../netlink/bytes.ts";
import { counterObject, type NftSet as KernelSet, setFlag, verdictDataType } from "../netlink/nftables.ts";
import { declareSet, type Part as KernelPart } from "../netlink/settypes.ts";
import { commentUserdata, setUserdata } from "../netlink/userdata.ts";
import { encodeClients, encodeItems, encodeSpreads } from "./elements.ts";
import { expressionsOf } from "./expressions.ts";

/** The answers must fit the receive buffer of the socket. */
const mostEchoed = 4096;

/** `from`: index of the operation in the Patch. */
export type Encoded = { readonly operation: KernelOperation; readonly from: number };

export type TableOptions = { readonly family: NftFamily; readonly tableFlags: number };

export function encodePatch(patch: readonly Operation[], options: TableOptions): readonly Encoded[] {
  const ids = new SetIds();
  return patch.flatMap((operation, from) =>
    encodeOperation(operation, ids, options).map((each) => ({ operation: each, from })),
  );
}

/** Numbers by which a rule finds its anonymous map within one transaction, far from those of named sets. */
class SetIds {
  #last = 0x1000_0000;

  next(): number {
    return ++this.#last;
  }
}

function encodeOperation(
  operation: Operation,
  ids: SetIds,
  { family, tableFlags }: TableOptions,
): readonly KernelOperation[] {
  const named = (name: string) => ({ family, table: tableName, name });
  switch (operation.kind) {
    case "add table":
      return [
        {
          kind: "addTable",
          table: { family, name: tableName, flags: tableFlags, userdata: commentUserdata(tableComment) },
        },
      ];
    case "delete table":
      return [{ kind: "deleteTable", table: { family, name: tableName } }];
    case "add set":
      return [{ kind: "addSet", set: kernelSet(operation.set, family) }];
    case "delete set":
      return [{ kind: "deleteSet", set: named(operation.name) }];
    case "add counter":
      return [
        {
          kind: "addCounter",
          counter: { ...named(operation.name), type: counterObject, counter: { bytes: 0n, packets: 0n } },
        },
      ];
    case "delete counter":
      return [{ kind: "deleteCounter", counter: named(operation.name) }];
    case "add chain":
      return [{ kind: "addChain", chain: kernelChain(operation.chain, family) }];
    case "flush chain":
      return [{ kind: "flushChain", chain: named(operation.name) }];
    case "delete chain":
      return [{ kind: "deleteChain", chain: named(operation.name) }];
    case "add rules":
      return encodeRules(operation.chain, ids, family);
    case "remember clients":
      return [
        {
          kind: "addElements",
          to: inSet(operation.set, family),
          elements: encodeClients(operation.set, operation.clients),
        },
      ];
    case "add elements":
      return [
        {
          kind: "addElements",
          to: inSet(operation.set, family),
          elements: encodeItems(operation.set, operation.items),
        },
      ];
    case "add slots":
      return [
        {
          kind: "addElements",
          to: inSet(operation.set, family),
          elements: encodeSpreads(operation.set, operation.spreads),
        },
      ];
    case "delete elements":
      return [
        {
          kind: "deleteElements",
          from: inSet(operation.set, family),
          elements: withoutData(encodeItems(operation.set, operation.items)),
          ...(operation.set.counted && operation.items.length <= mostEchoed ? { echo: true } : {}),
        },
      ];
  }
}

export function kernelSet(set: NftSet, family: NftFamily): KernelSet {
  return declareSet({
    family,
    table: tableName,
    name: set.name,
    key: set.key.map((part) => kernelPart(part, family, isSlotMap(set))),
    ...(set.data === null
      ? {}
      : {
          data: set.data === "verdict" ? "verdict" : set.data.map((part) => kernelPart(part, family, true)),
        }),
    interval: set.interval,
    ...(set.timeout === null ? {} : { dynamic: true, timeout: set.timeout * 1000, size: dynamicSetSize }),
    ...(set.comment === null ? {} : { comment: set.comment }),
    ...(set.counted ? { counted: true } : {}),
  });
}

function kernelPart(part: Part, family: NftFamily, byTypeof: boolean): KernelPart {
  switch (part) {
    case "address":
      return byTypeof ? `${family} daddr` : family === "ip" ? "ipv4_addr" : "ipv6_addr";
    case "protocol":
      return byTypeof ? "meta l4proto" : "inet_proto";
    case "port":
      return byTypeof ? "th dport" : "inet_service";
    case "slot":
      return "numgen random mod 65536";
  }
}

function kernelChain(
  { name, hook, comment }: Chain,
  family: NftFamily,
): Extract<KernelOperation, { kind: "addChain" }>["chain"] {
  return {
    family,
    table: tableName,
    name,
    ...(hook === null
      ? {}
      : { type: hook.type, hook: { hook: hook.hook, priority: hook.priority }, policy: "accept" as const }),
    ...(comment === null ? {} : { userdata: commentUserdata(comment) }),
  };
}

/** Rules, each after the anonymous map it needs. */
function encodeRules(chain: Chain, ids: SetIds, family: NftFamily): readonly KernelOperation[] {
  const operations: KernelOperation[] = [];
  for (const rule of chain.rules) {
    const expressions = expressionsOf(rule, family, (chains) => {
      const setId = ids.next();
      operations.push(...anonymousMap(chains, setId, family));
      return { set: anonymousName, setId };
    });
    const userdata = rule.comment === null ? {} : { userdata: commentUserdata(rule.comment) };
    operations.push({
      kind: "addRule",
      rule: { family, table: tableName, chain: chain.name, expressions, ...userdata },
    });
  }
  return operations;
}

/** The kernel replaces the placeholder by a number. */
const anonymousName = "__map%d";

function anonymousMap(chains: readonly string[], id: number, family: NftFamily): readonly KernelOperation[] {
  const integerType = 4;
  const set: KernelSet = {
    family,
    table: tableName,
    name: anonymousName,
    id,
    flags: setFlag.anonymous | setFlag.constant | setFlag.map,
    keyType: integerType,
    keyLength: 4,
    dataType: verdictDataType,
    dataLength: 16,
    description: { size: chains.length },
    userdata: setUserdata({ keyOrder: "host", data: { order: "none" } }),
  };
  const elements = chains.map((chain, slot) => ({
    key: hostU32Bytes(slot),
    data: { kind: "goto", chain } as const,
  }));
  return [
    { kind: "addSet", set },
    { kind: "addElements", to: { family, table: tableName, set: anonymousName, setId: id }, elements },
  ];
}

function inSet(set: NftSet, family: NftFamily): { family: NftFamily; table: string; set: string } {
  return { family, table: tableName, set: set.name };
}

/** An element is deleted by its key alone. */
function* withoutData(elements: Iterable<{ key: string }>): Generator<{ key: string }> {
  for (const element of elements) {
    const {
      data: _data,
      userdata: _userdata,
      ...key
    } = element as { key: string; data?: unknown; userdata?: unknown };
    yield key;
  }
}
