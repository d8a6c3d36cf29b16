// Converts a dumped table to the Plan's types. Rules are recognised by comparing them with what is wanted, expression by expression.
import type { Steps } from "../../model/steps.ts";
import { printMapped } from "../../plan/nftables/print.ts";
import {
  type BackendSlots,
  type Chain,
  type Client,
  type Element,
  isSlotMap,
  type NftFamily,
  type NftSet,
  type NftTable,
  type Rule,
} from "../../plan/nftables/types.ts";
import { goto } from "../../plan/nftables/verdict.ts";
import { hostU32Of } from "../netlink/bytes.ts";
import type { Expr } from "../netlink/expressions.ts";
import { type NftSet as KernelSet, setFlag } from "../netlink/nftables.ts";
import type { TableContents } from "../netlink/ruleset.ts";
import { commentOf } from "../netlink/userdata.ts";
import { decodeClients, decodeElements } from "./elements.ts";
import { kernelSet } from "./encode.ts";
import { expressionsOf } from "./expressions.ts";
import { WantedElements } from "./wanted-elements.ts";
import { WantedSlots } from "./wanted-slots.ts";

/** Reads tables where this one is wanted. */
export function* decoderOf(want: NftTable): Steps<(contents: TableContents) => Steps<NftTable>> {
  const wanted: Wanted = { slots: new Map(), elements: new Map() };
  for (const set of want.sets.values()) {
    const { name } = set;
    if (isSlotMap(set))
      wanted.slots.set(name, yield* WantedSlots.of(set, want.spreads.get(name) ?? new Map()));
    else if (!set.interval && set.timeout === null)
      wanted.elements.set(name, yield* WantedElements.of(set, want.elements.get(name) ?? new Map()));
  }
  return (contents) => decodeTable(contents, want, wanted);
}

/** By the name of the set. */
type Wanted = {
  readonly slots: Map<string, WantedSlots>;
  readonly elements: Map<string, WantedElements>;
};

function* decodeTable(contents: TableContents, want: NftTable, wanted: Wanted): Steps<NftTable> {
  const sets = new Map<string, NftSet>();
  const elements = new Map<string, ReadonlyMap<string, Element>>();
  const spreads = new Map<string, ReadonlyMap<string, BackendSlots>>();
  for (const dumped of contents.sets) {
    if (isAnonymous(dumped)) continue;
    const set = recognisedSet(dumped, want);
    sets.set(set.name, set);
    const contained = contents.elements.get(set.name);
    if (contained === undefined || set.timeout !== null || isForeign(set)) continue;
    if (isSlotMap(set)) putSome(spreads, set.name, yield* wanted.slots.get(set.name)!.slotsIn(contained));
    else if (set.interval)
      putSome(elements, set.name, yield* decodeElements(set, yield* contained.except(() => false)));
    else putSome(elements, set.name, yield* wanted.elements.get(set.name)!.elementsIn(contained));
    yield;
  }
  return {
    family: want.family,
    sets,
    counters: new Set(contents.counters.map(({ name }) => name)),
    chains: recognisedChains(contents, want),
    elements,
    spreads,
  };
}

function putSome<T>(
  into: Map<string, ReadonlyMap<string, T>>,
  name: string,
  held: ReadonlyMap<string, T>,
): void {
  if (held.size > 0) into.set(name, held);
}

/** The contents of dynamic sets that are in the Plan. */
export function decodeRemembered(
  contents: TableContents,
  want: NftTable,
): ReadonlyMap<string, readonly Client[]> {
  const remembered = new Map<string, readonly Client[]>();
  for (const dumped of contents.sets) {
    if (isAnonymous(dumped) || recognisedSet(dumped, want).timeout === null) continue;
    const clients = decodeClients(contents.elements.get(dumped.name)?.all() ?? []);
    if (clients.length > 0) remembered.set(dumped.name, clients);
  }
  return remembered;
}

/** A set that is not in the Plan, or differs: its elements need not be decoded, it will be deleted as a whole. */
function isForeign(set: NftSet): boolean {
  return set.key.length === 0;
}

function recognisedSet(dumped: KernelSet, want: NftTable): NftSet {
  const wanted = want.sets.get(dumped.name);
  if (wanted !== undefined && sameDeclaration(dumped, kernelSet(wanted, want.family))) {
    return wanted.timeout === null
      ? wanted
      : { ...wanted, timeout: Math.round((dumped.timeout ?? 0) / 1000) };
  }
  return { name: dumped.name, key: [], data: null, interval: false, timeout: null, comment: null };
}

function sameDeclaration(a: KernelSet, b: KernelSet): boolean {
  return (
    a.flags === b.flags &&
    a.keyType === b.keyType &&
    a.keyLength === b.keyLength &&
    a.expression?.kind === b.expression?.kind &&
    a.dataType === b.dataType &&
    // The kernel sets the data length of a verdict map.
    (a.dataLength === b.dataLength || b.dataType === 0xffffff00)
  );
}

function recognisedChains(contents: TableContents, want: NftTable): Map<string, Chain> {
  const slots = anonymousMaps(contents);
  const rules = new Map<string, DumpedRule[]>();
  for (const { chain, expressions, userdata } of contents.rules) {
    const dumped = { text: ruleText(expressions, commentOf(userdata), slots), slots: slotsIn(expressions) };
    const others = rules.get(chain);
    if (others === undefined) rules.set(chain, [dumped]);
    else others.push(dumped);
  }
  return new Map(
    contents.chains.map((dumped) => [
      dumped.name,
      recognisedChain(dumped, rules.get(dumped.name) ?? [], want),
    ]),
  );
}

/** `slots`: among how many a rule picks; null when it does not pick. */
type DumpedRule = { readonly text: string; readonly slots: number | null };

function slotsIn(expressions: readonly Expr[]): number | null {
  return expressions.find((each) => each.kind === "numgen")?.modulus ?? null;
}

function recognisedChain(
  dumped: TableContents["chains"][number],
  rules: readonly DumpedRule[],
  want: NftTable,
): Chain {
  const wanted = want.chains.get(dumped.name);
  const hook =
    dumped.hook === undefined
      ? null
      : { type: dumped.type as "nat", hook: dumped.hook.hook as "input", priority: dumped.hook.priority };
  for (const candidate of wanted === undefined ? [] : [wanted, pickingAsFound(wanted, rules)]) {
    if (sameRules(candidate, rules, want.family)) return { ...candidate, hook };
  }
  return { name: dumped.name, hook, rules: rules.map(() => unknownRule), comment: null };
}

/** The chain of a pool that has another number of slots than is wanted is still recognised. */
function pickingAsFound(wanted: Chain, found: readonly DumpedRule[]): Chain {
  const rules = wanted.rules.map((rule, i) => {
    const slots = found[i]?.slots ?? null;
    if (slots === null) return rule;
    const statements = rule.statements.map((each) =>
      each.kind === "dnat by slot" ? { ...each, slots } : each,
    );
    return { ...rule, statements };
  });
  return { ...wanted, rules };
}

const unknownRule: Rule = { statements: [], comment: "not ours" };

function sameRules(wanted: Chain, rules: readonly DumpedRule[], family: NftFamily): boolean {
  if (wanted.rules.length !== rules.length) return false;
  const slots = new Map<string, string>();
  return wanted.rules.every((rule, i) => {
    const expressions = expressionsOf(rule, family, (chains) => {
      slots.set("wanted", chains.map((chain, slot) => printMapped(String(slot), goto(chain))).join());
      return { set: "wanted" };
    });
    return ruleText(expressions, rule.comment, slots) === rules[i]!.text;
  });
}

/** Name of each anonymous map → what it holds. */
function anonymousMaps(contents: TableContents): ReadonlyMap<string, string> {
  return new Map(
    contents.sets.filter(isAnonymous).map(({ name }) => [
      name,
      (contents.elements.get(name)?.all() ?? [])
        .map(({ key, data }) => ({ slot: key.length === 4 ? hostU32Of(key) : -1, data }))
        .sort((a, b) => a.slot - b.slot)
        .map(({ slot, data }) => (typeof data === "object" ? printMapped(String(slot), data) : "?"))
        .join(),
    ]),
  );
}

function isAnonymous({ flags }: KernelSet): boolean {
  return (flags & setFlag.anonymous) !== 0;
}

/** One text for rules that mean the same: the kernel fills in what was left out, and numbers anonymous maps. */
function ruleText(
  expressions: readonly Expr[],
  comment: string | null,
  slots: ReadonlyMap<string, string>,
): string {
  const plain = expressions.map((each) => {
    if (each.kind === "lookup") {
      const { setId: _setId, ...lookup } = each;
      return { ...lookup, set: slots.get(each.set) ?? each.set };
    }
    if (each.kind === "nat") {
      const { addressMax: _addressMax, portMax: _portMax, ...nat } = each;
      return { ...nat, flags: each.flags & ~3 };
    }
    if (each.kind === "dynset") {
      const { setId: _setId, ...dynset } = each;
      return dynset;
    }
    return each;
  });
  return JSON.stringify([comment, plain.map(sortedKeys)]);
}

function sortedKeys(value: object): [string, unknown][] {
  return Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
