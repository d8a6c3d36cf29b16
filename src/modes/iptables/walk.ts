// Walks a packet through iptables tables as the kernel would, and keeps the steps.
import { type Address, contains, type Family, hostCidr, isLoopback } from "../../model/address.ts";
import { parseRule } from "../../plan/iptables/parse-rule.ts";
import { chainsOf } from "../../plan/iptables/plan.ts";
import { savedRule } from "../../plan/iptables/text.ts";
import type {
  ChainName,
  HostTables,
  IptablesPlan,
  Match,
  Rule,
  TableName,
} from "../../plan/iptables/types.ts";
import type { Packet } from "../../routing/decide.ts";
import type { Surroundings, WalkOutcome } from "../walk.ts";

/** One rule that applied, as `iptables-save` prints it. */
export type IptablesStep = { readonly table: TableName; readonly chain: ChainName; readonly rule: string };

/** One way the packet can go; there are as many as there are random choices, all equally likely. */
export type IptablesWalk = {
  readonly outcome: WalkOutcome;
  readonly steps: readonly IptablesStep[];
};

export type IptablesSurroundings = Surroundings & {
  /** Whether a packet matches an IP set by these sides; where there are sets. */
  readonly isInSet?: (set: string, sides: string, packet: SetView) => boolean;
};

/** The parts of a packet that an IP set matches. */
export type SetView = {
  readonly source: Address;
  readonly destination: Place;
  readonly protocol: Packet["to"]["protocol"];
};

type Place = { readonly address: Address; readonly port: number };

/** Rules by table and chain, ready to be walked. */
export type Ruleset = {
  readonly family: Family;
  readonly tables: ReadonlyMap<TableName, ReadonlyMap<ChainName, readonly Rule[]>>;
};

/** The rules of a Plan on a host that holds nothing else. */
export function rulesetOf(plan: IptablesPlan): Ruleset {
  const tables = (["filter", "nat"] as const).map((table) => {
    const chains = new Map<ChainName, Rule[]>();
    for (const { name, rules } of chainsOf(plan, table)) chains.set(name, [...rules]);
    for (const jump of plan.foundation.jumps.filter((jump) => jump.table === table)) {
      chains.set(jump.chain, [jump.rule, ...(chains.get(jump.chain) ?? [])]);
    }
    for (const jump of plan.foundation.lastJumps?.filter((jump) => jump.table === table) ?? []) {
      chains.set(jump.chain, [...(chains.get(jump.chain) ?? []), jump.rule]);
    }
    return [table, chains] as const;
  });
  return { family: plan.family, tables: new Map(tables) };
}

/** The rules a host holds; those with conditions that we never write are left out. */
export function rulesetOnHost({ family, tables }: HostTables): Ruleset {
  const read = (lines: readonly string[]) => lines.map(parseRule).filter((rule) => rule !== null);
  return {
    family,
    tables: new Map(
      [...tables].map(([table, chains]) => [
        table,
        new Map([...chains].map(([name, lines]) => [name, read(lines)])),
      ]),
    ),
  };
}

/** Every way a new packet can go. */
export function walkIptables(
  rules: Ruleset,
  packet: Packet,
  around: IptablesSurroundings,
): readonly IptablesWalk[] {
  const walks: IptablesWalk[] = [];
  // A random rule matches unless an answer is false; every list of answers is one path.
  const waiting: boolean[][] = [[]];
  for (let answers = waiting.pop(); answers !== undefined; answers = waiting.pop()) {
    const state = startOf(rules, packet, around, answers);
    const refused = passHooks(state);
    walks.push({ outcome: outcomeOf(state, refused), steps: state.steps });
    for (let taken = answers; taken.length < state.chances; taken = [...taken, true]) {
      waiting.push([...taken, false]);
    }
  }
  return walks;
}

/** A packet on its way. */
export type State = {
  readonly rules: Ruleset;
  readonly around: IptablesSurroundings;
  readonly packet: Packet;
  readonly answers: readonly boolean[];
  chances: number;
  mark: number;
  source: Address;
  destination: Place;
  /** The virtual server it went through, if any. */
  server: Place | null;
  translated: boolean;
  masqueraded: boolean;
  readonly steps: IptablesStep[];
};

/** How a chain ends: its caller continues, or the packet leaves the table. */
type End = "continue" | "accept" | "drop" | "reject";

export function startOf(
  rules: Ruleset,
  packet: Packet,
  around: IptablesSurroundings,
  answers: readonly boolean[] = [],
): State {
  const { address, port } = packet.to;
  const start = { chances: 0, mark: 0, server: null, translated: false, masqueraded: false, steps: [] };
  const source = packet.from.address;
  return { rules, around, packet, answers, source, destination: { address, port }, ...start };
}

export function outcomeOf(state: State, refused: "drop" | "reject" | null): IptablesWalk["outcome"] {
  if (refused !== null) return { kind: refused };
  if (!state.translated) return { kind: "pass" };
  return { kind: "forward", backend: state.destination, masquerade: state.masqueraded };
}

/** A packet of the node itself that stays on the node goes out and comes in again. */
function passHooks(state: State): "drop" | "reject" | null {
  const staysHere = () => isLocal(state, state.destination.address);
  if (state.packet.from.origin === "node") {
    const out =
      run(state, "nat", "OUTPUT") ?? run(state, "filter", "OUTPUT") ?? run(state, "nat", "POSTROUTING");
    return out ?? (staysHere() ? run(state, "filter", "INPUT") : null);
  }
  const before = run(state, "nat", "PREROUTING");
  if (before !== null) return before;
  if (staysHere()) return run(state, "filter", "INPUT");
  return run(state, "filter", "FORWARD") ?? run(state, "nat", "POSTROUTING");
}

export function run(state: State, table: TableName, builtIn: ChainName): "drop" | "reject" | null {
  const end = runChain(state, table, builtIn);
  return end === "drop" || end === "reject" ? end : null;
}

function runChain(state: State, table: TableName, chain: ChainName): End {
  for (const rule of state.rules.tables.get(table)?.get(chain) ?? []) {
    if (!rule.match.every((match) => holds(state, match))) continue;
    state.steps.push({ table, chain, rule: savedRule(rule, state.rules.family) });
    const end = carryOut(state, table, rule);
    if (end === "return") return "continue";
    if (end !== "continue") return end;
  }
  return "continue";
}

function carryOut(state: State, table: TableName, { target }: Rule): End | "return" {
  switch (target.kind) {
    case "jump":
      return runChain(state, table, target.chain);
    case "accept":
    case "drop":
    case "reject":
    case "return":
      return target.kind;
    case "setMark":
      state.mark |= target.mark;
      return "continue";
    case "flipMark":
      state.mark ^= target.mark;
      return "continue";
    case "masquerade":
      state.masqueraded = true;
      return "accept";
    case "dnat":
      state.destination = { address: target.address, port: target.port };
      state.translated = true;
      return "accept";
    case "redirect":
      state.destination = { address: interfaceAddress(state), port: target.port };
      state.translated = true;
      return "accept";
    case "none":
      return "continue";
  }
}

function holds(state: State, match: Match): boolean {
  const { to } = state.packet;
  const { source, destination, server } = state;
  switch (match.kind) {
    case "comment":
    case "remember":
    case "counter":
    case "notBridged":
      return true;
    case "protocol":
    case "bareProtocol":
      return to.protocol === match.protocol;
    case "source":
      return inNetwork(match.cidr, source) !== match.not;
    case "destination":
      return inNetwork(match.cidr, destination.address) !== match.not;
    case "inInterface":
      return isInterface(match.name, state) !== match.not;
    case "destinationPort":
      return destination.port === match.port;
    case "mark":
      return ((state.mark & match.mark) !== 0) !== match.not;
    case "ctstate":
      return (
        match.states.split(",").some((name) => name === "NEW" || (name === "DNAT" && state.translated)) !==
        match.not
      );
    case "state":
      return match.states.split(",").includes("NEW");
    case "localAddress":
      return isLocal(state, match.side === "src" ? source : destination.address) !== match.not;
    case "set": {
      const { isInSet } = state.around;
      return isInSet?.(match.name, match.sides, { source, destination, protocol: to.protocol }) === true;
    }
    case "ipvs":
      return (
        server?.address === match.address && server.port === match.port && to.protocol === match.protocol
      );
    case "random":
      return state.answers[state.chances++] ?? true;
    case "recentlySeen":
      return state.around.remembered?.get(match.list)?.has(source) === true;
  }
}

function inNetwork(place: string, address: Address): boolean {
  return contains(place.includes("/") ? place : hostCidr(place), address);
}

function isInterface(name: string, { packet, around }: State): boolean {
  if (packet.from.origin !== "pod") return false;
  return name.endsWith("+")
    ? around.podInterface.startsWith(name.slice(0, -1))
    : around.podInterface === name;
}

/** A redirected packet goes to the address of the interface it came in through, or to loopback if it started here. */
function interfaceAddress({ packet, around, rules }: State): Address {
  const loopback = rules.family === "ipv4" ? "127.0.0.1" : "::1";
  return packet.from.origin === "node" ? loopback : (around.localAddresses[0] ?? loopback);
}

export function isLocal({ around }: State, address: Address): boolean {
  return isLoopback(address) || around.localAddresses.includes(address);
}
