// Walks a packet through an nftables table as the kernel would, and keeps the steps.
import { contains, isLoopback } from "../../model/address.ts";
import { type ElementKey, isInRange, joinKey } from "../../plan/nftables/key.ts";
import { printMapped, printSlot, printStatements } from "../../plan/nftables/print.ts";
import type {
  Backend,
  Chain,
  Field,
  Hook,
  NftTable,
  OnLookup,
  Rule,
  Verdict,
} from "../../plan/nftables/types.ts";
import { goto } from "../../plan/nftables/verdict.ts";
import type { Packet } from "../../routing/decide.ts";
import type { Surroundings, WalkOutcome } from "../walk.ts";

/** One rule that applied, as `nft list` shows it, and the element that made it apply. */
export type NftStep = { readonly chain: string; readonly rule: string; readonly element: string | null };

/** One way the packet can go; there are as many as there are random choices, all equally likely. */
export type NftWalk = {
  readonly outcome: WalkOutcome;
  readonly steps: readonly NftStep[];
};

/** Every way a new packet can go through the table; `onLookup` receives the elements that the answer depends on. */
export function walkNftables(
  table: NftTable,
  packet: Packet,
  around: Surroundings,
  onLookup: OnLookup = () => {},
): readonly NftWalk[] {
  const once = (pick: number) => walkOnce(table, packet, around, onLookup, pick);
  const first = once(0);
  const rest = Array.from({ length: first.choices - 1 }, (_, i) => once(i + 1));
  return [first, ...rest].map(({ walk }) => walk);
}

type State = {
  readonly table: NftTable;
  readonly around: Surroundings;
  readonly onLookup: OnLookup;
  readonly packet: Packet;
  readonly pick: number;
  choices: number;
  mark: number;
  saddr: string;
  daddr: string;
  dport: number;
  inputInterface: string;
  translated: Backend | null;
  masqueraded: boolean;
  readonly steps: NftStep[];
};

type ChainEnd = "continue" | "accept" | "drop" | "reject";

function walkOnce(
  table: NftTable,
  packet: Packet,
  around: Surroundings,
  onLookup: OnLookup,
  pick: number,
): { walk: NftWalk; choices: number } {
  const state: State = {
    table,
    around,
    onLookup,
    packet,
    pick,
    choices: 1,
    mark: 0,
    saddr: packet.from.address,
    daddr: packet.to.address,
    dport: packet.to.port,
    inputInterface:
      packet.from.origin === "pod" ? around.podInterface : packet.from.origin === "node" ? "" : "eth0",
    translated: null,
    masqueraded: false,
    steps: [],
  };
  const refused = passHooks(state);
  return { walk: { outcome: outcomeOf(state, refused), steps: state.steps }, choices: state.choices };
}

function outcomeOf(state: State, refused: "drop" | "reject" | null): NftWalk["outcome"] {
  if (refused !== null) return { kind: refused };
  if (state.translated === null) return { kind: "pass" };
  return { kind: "forward", backend: state.translated, masquerade: state.masqueraded };
}

/** A packet of the node itself that stays on the node goes out and comes in again. */
function passHooks(state: State): "drop" | "reject" | null {
  if (state.packet.from.origin === "node") {
    const out = run(state, "output") ?? run(state, "postrouting");
    if (out !== null || !isLocal(state, state.daddr)) return out;
    state.inputInterface = "lo";
    return run(state, "prerouting", "filter") ?? run(state, "input");
  }
  const before = run(state, "prerouting");
  if (before !== null) return before;
  return isLocal(state, state.daddr)
    ? run(state, "input")
    : (run(state, "forward") ?? run(state, "postrouting"));
}

function run(state: State, hook: Hook["hook"], type?: Hook["type"]): "drop" | "reject" | null {
  const chains = [...state.table.chains.values()]
    .filter((chain) => chain.hook?.hook === hook && (type === undefined || chain.hook.type === type))
    .sort((a, b) => a.hook!.priority - b.hook!.priority);
  for (const chain of chains) {
    const verdict = runChain(state, chain);
    if (verdict === "drop" || verdict === "reject") return verdict;
  }
  return null;
}

function runChain(state: State, chain: Chain): ChainEnd {
  for (const rule of chain.rules) {
    const end = runRule(state, chain, rule);
    if (end === "return") return "continue";
    if (end !== "next") return end;
  }
  return "continue";
}

/** `next`: the next rule of the chain follows; `return`: none follows. */
type RuleEnd = ChainEnd | "next" | "return";

function runRule(state: State, chain: Chain, rule: Rule): RuleEnd {
  let element: string | null = null;
  const applied = () => {
    state.steps.push({
      chain: chain.name,
      rule: printStatements(rule.statements, state.table.family),
      element,
    });
  };
  for (const statement of rule.statements) {
    switch (statement.kind) {
      case "ct state new":
      case "ct status ! confirmed":
        break;
      case "ct status dnat":
        if (state.translated === null) return "next";
        break;
      case "address":
        if (contains(statement.network, state[statement.field]) === statement.not) return "next";
        break;
      case "iifname": {
        const name = state.inputInterface;
        const matches = statement.prefix ? name.startsWith(statement.name) : name === statement.name;
        if (matches === statement.not) return "next";
        break;
      }
      case "fib local":
        if (!isLocal(state, state[statement.field])) return "next";
        break;
      case "in set":
        element = memberOf(state, statement.set, keyOf(state, statement.fields));
        if (element === null) return "next";
        break;
      case "marked":
        if ((state.mark & statement.mark) === 0) return "next";
        break;
      case "set mark":
        state.mark = statement.how === "or" ? state.mark | statement.mark : state.mark ^ statement.mark;
        break;
      case "vmap": {
        const key = keyOf(state, statement.fields);
        state.onLookup(statement.map, key, null);
        const verdict = state.table.elements.get(statement.map)?.get(key)?.data ?? null;
        if (verdict === null) return "next";
        element = printMapped(key, verdict);
        applied();
        return follow(state, verdict);
      }
      case "goto by slot":
        applied();
        return follow(state, goto(statement.chains[choose(state, statement.chains.length)]!));
      case "dnat by slot": {
        if (state.packet.to.protocol !== statement.protocol) return "next";
        const key = keyOf(state, statement.fields);
        const slot = choose(state, statement.slots);
        state.onLookup(statement.map, key, slot);
        const backend = state.table.spreads.get(statement.map)?.get(key)?.backends[slot];
        if (backend === undefined) return "next";
        element = printSlot(key, slot, backend);
        applied();
        return translate(state, backend);
      }
      case "dnat":
        if (state.packet.to.protocol !== statement.protocol) return "next";
        applied();
        return translate(state, statement);
      case "masquerade":
        state.masqueraded = true;
        applied();
        return "accept";
      case "remember sender":
      case "count":
        break;
      case "jump":
        return follow(state, statement);
      case "goto":
      case "return":
      case "drop":
        applied();
        return follow(state, statement);
      case "reject":
        applied();
        return "reject";
    }
  }
  applied();
  return "next";
}

function follow(state: State, verdict: Verdict): RuleEnd {
  switch (verdict.kind) {
    case "accept":
    case "drop":
    case "return":
      return verdict.kind;
    case "continue":
    case "break":
      return "next";
    case "goto":
      return runChainNamed(state, verdict.chain);
    case "jump": {
      const end = runChainNamed(state, verdict.chain);
      return end === "continue" ? "next" : end;
    }
  }
}

function runChainNamed(state: State, name: string): ChainEnd {
  const chain = state.table.chains.get(name);
  return chain === undefined ? "continue" : runChain(state, chain);
}

function translate(state: State, { address, port }: Backend): ChainEnd {
  state.translated = { address, port };
  state.daddr = address;
  state.dport = port;
  return "accept";
}

function choose(state: State, among: number): number {
  state.choices = among;
  return state.pick;
}

function keyOf(state: State, fields: readonly Field[]): ElementKey {
  const values: Record<Field, string> = {
    saddr: state.saddr,
    daddr: state.daddr,
    l4proto: state.packet.to.protocol,
    dport: String(state.dport),
  };
  return joinKey(fields.map((field) => values[field]));
}

/** The element of a set that holds the key: the key itself, or a network that contains it. */
function memberOf(state: State, name: string, key: ElementKey): ElementKey | null {
  if (state.around.remembered?.get(name)?.has(key)) return key;
  const set = state.table.sets.get(name);
  const elements = state.table.elements.get(name);
  if (set?.interval !== true) {
    state.onLookup(name, key, null);
    return elements?.has(key) ? key : null;
  }
  for (const element of elements?.keys() ?? []) if (isInRange(element, key)) return element;
  return null;
}

function isLocal(state: State, address: string): boolean {
  return isLoopback(address) || state.around.localAddresses.includes(address);
}
