// A table as text that `nft -f` accepts; same table, same bytes.
import { joinHostPort } from "../../model/address.ts";
import { networkKey, slotKey } from "./key.ts";
import {
  type Backend,
  type BackendSlots,
  type Chain,
  dynamicSetSize,
  type Element,
  type Field,
  type Hook,
  isSlotMap,
  type NftFamily,
  type NftSet,
  type NftTable,
  type Part,
  type Rule,
  type Statement,
  tableComment,
  tableName,
  type Verdict,
} from "./types.ts";
import { goto } from "./verdict.ts";

export function print(table: NftTable): string {
  const blocks = [
    ...byName(table.counters, (name) => name).map((name) => [
      `counter ${name} {`,
      "\tpackets 0 bytes 0",
      "}",
    ]),
    ...byName(table.sets.values(), ({ name }) => name).map((set) => setLines(set, table)),
    ...[...table.chains.values()]
      .filter(({ hook }) => hook !== null)
      .map((chain) => chainLines(chain, table.family)),
    ...byName(
      [...table.chains.values()].filter(({ hook }) => hook === null),
      ({ name }) => name,
    ).map((chain) => chainLines(chain, table.family)),
  ];
  const body = blocks.map((lines) => lines.map((line) => `\t${line}\n`).join("")).join("\n");
  return `table ${table.family} ${tableName} {\n\tcomment "${tableComment}"\n\n${body}}\n`;
}

/** One rule as nft lists it, without its comment. */
export function printStatements(statements: readonly Statement[], family: NftFamily): string {
  return statements.map((statement) => printStatement(statement, family)).join(" ");
}

/** Elements of a set, slots included, sorted, as nft writes each. */
export function printElements(set: NftSet, table: NftTable): string[] {
  const count = set.counted ? uncounted : "";
  if (!isSlotMap(set))
    return [...(table.elements.get(set.name)?.values() ?? [])]
      .map((element) => printElement(element, count))
      .sort();
  // First by key: sorting all slots together takes longer than everything else here.
  const spreads = byName(table.spreads.get(set.name)?.values() ?? [], ({ key }) => key);
  return spreads.flatMap((slots) => printSlots(slots, count));
}

/** A counter that has counted nothing yet. */
const uncounted = " counter packets 0 bytes 0";

function printSlots({ key, backends }: BackendSlots, count: string): string[] {
  const slots: string[] = [];
  for (let slot = 0; slot < backends.length; slot++) {
    const backend = backends[slot];
    if (backend !== undefined) slots.push(printSlot(key, slot, backend, count));
  }
  // Numbers of one digit are in order as text, too.
  return backends.length <= 10 ? slots : slots.sort();
}

function setLines(set: NftSet, table: NftTable): string[] {
  const flags = [
    ...(set.interval ? ["interval"] : []),
    ...(set.timeout === null ? [] : ["dynamic", "timeout"]),
  ];
  const elements = printElements(set, table);
  return [
    `${set.data === null ? "set" : "map"} ${set.name} {`,
    `\t${setType(set, table.family)}`,
    ...(set.timeout === null ? [] : [`\tsize ${dynamicSetSize}`]),
    ...(flags.length === 0 ? [] : [`\tflags ${flags.join(",")}`]),
    ...(set.timeout === null ? [] : [`\ttimeout ${printSeconds(set.timeout)}`]),
    ...(set.counted ? ["\tcounter"] : []),
    ...(set.comment === null ? [] : [`\tcomment ${quote(set.comment)}`]),
    ...(elements.length === 0 ? [] : [`\telements = { ${elements.join(",\n\t\t\t     ")} }`]),
    "}",
  ];
}

/** A slot map needs `typeof`: no named type holds the number of a slot. */
function setType(set: NftSet, family: NftFamily): string {
  const data = set.data === null ? "" : set.data === "verdict" ? " : verdict" : null;
  if (!isSlotMap(set)) return `type ${set.key.map((part) => typeNames[part](family)).join(" . ")}${data}`;
  const typeofParts = (parts: readonly Part[]) => parts.map((part) => typeofNames[part](family)).join(" . ");
  return `typeof ${typeofParts(set.key)} : ${typeofParts(set.data as readonly Part[])}`;
}

const typeNames: Record<Part, (family: NftFamily) => string> = {
  address: (family) => (family === "ip" ? "ipv4_addr" : "ipv6_addr"),
  protocol: () => "inet_proto",
  port: () => "inet_service",
  slot: () => "mark",
};

const typeofNames: Record<Part, (family: NftFamily) => string> = {
  address: (family) => `${family} daddr`,
  protocol: () => "meta l4proto",
  port: () => "th dport",
  slot: () => "numgen random mod 65536",
};

function printElement({ key, data, comment }: Element, count: string): string {
  const mapped = data === null ? "" : ` : ${printVerdict(data)}`;
  return `${key}${count}${comment === null ? "" : ` comment ${quote(comment)}`}${mapped}`;
}

/** An element of a verdict map as nft lists it, without its comment. */
export function printMapped(key: string, verdict: Verdict): string {
  return `${key} : ${printVerdict(verdict)}`;
}

/** One slot of a slot map as nft lists it. */
export function printSlot(key: string, slot: number, backend: Backend, count = ""): string {
  return `${slotKey(key, slot)}${count} : ${printBackend(backend)}`;
}

export function printVerdict(verdict: Verdict): string {
  return "chain" in verdict ? `${verdict.kind} ${verdict.chain}` : verdict.kind;
}

function printBackend({ address, port }: Backend): string {
  return `${address} . ${port}`;
}

function chainLines(chain: Chain, family: NftFamily): string[] {
  return [
    `chain ${chain.name} {`,
    ...(chain.comment === null ? [] : [`\tcomment ${quote(chain.comment)}`]),
    ...(chain.hook === null ? [] : [`\t${printHook(chain.hook)}`]),
    ...chain.rules.map((rule) => `\t${printRule(rule, family)}`),
    "}",
  ];
}

function printHook({ type, hook, priority }: Hook): string {
  return `type ${type} hook ${hook} priority ${printPriority(hook, priority)}; policy accept;`;
}

/** Older tools accept the names of the NAT priorities on their own hooks only. */
function printPriority(hook: Hook["hook"], priority: number): string {
  if (priority === 0) return "filter";
  if (hook === "prerouting" && priority === -100) return "dstnat";
  if (hook === "prerouting" && priority === -110) return "dstnat - 10";
  if (hook === "postrouting" && priority === 100) return "srcnat";
  return String(priority);
}

function printRule(rule: Rule, family: NftFamily): string {
  const text = printStatements(rule.statements, family);
  return rule.comment === null ? text : `${text} comment ${quote(rule.comment)}`;
}

function printStatement(statement: Statement, family: NftFamily): string {
  switch (statement.kind) {
    case "ct state new":
    case "ct status dnat":
    case "ct status ! confirmed":
    case "reject":
      return statement.kind;
    case "drop":
    case "return":
    case "jump":
    case "goto":
      return printVerdict(statement);
    case "address":
      return `${family} ${statement.field}${statement.not ? " !=" : ""} ${networkKey(statement.network)}`;
    case "iifname":
      return `iifname${statement.not ? " !=" : ""} ${quote(statement.name + (statement.prefix ? "*" : ""))}`;
    case "fib local":
      return `fib ${statement.field} type local`;
    case "in set":
      return `${printFields(statement.fields, family)} @${statement.set}`;
    case "vmap":
      return `${printFields(statement.fields, family)} vmap @${statement.map}`;
    case "marked":
      // nft takes a mask of the highest bit for a prefix.
      return statement.mark === 0x80000000
        ? "meta mark != 0x00000000/1"
        : `meta mark & ${hex(statement.mark)} != 0x00000000`;
    case "set mark":
      return `meta mark set meta mark ${statement.how === "or" ? "|" : "^"} ${hex(statement.mark)}`;
    case "dnat":
      return `meta l4proto ${statement.protocol} dnat to ${joinHostPort(statement.address, statement.port)}`;
    case "dnat by slot": {
      if (statement.fields.length === 0)
        return `meta l4proto ${statement.protocol} dnat ${family} to numgen random mod ${statement.slots} map @${statement.map}`;
      // nft folds the match on the protocol into the name of the port field.
      const key = printFields(statement.fields, family).replace("th dport", `${statement.protocol} dport`);
      return `dnat ${family} to ${key} . numgen random mod ${statement.slots} map @${statement.map}`;
    }
    case "goto by slot":
      return `numgen random mod ${statement.chains.length} vmap { ${statement.chains.map((chain, slot) => printMapped(String(slot), goto(chain))).join(", ")} }`;
    case "remember sender":
      return `update @${statement.set} { ${family} saddr }`;
    case "masquerade":
      return "masquerade fully-random";
    case "count":
      return `counter name ${quote(statement.counter)}`;
  }
}

function printFields(fields: readonly Field[], family: NftFamily): string {
  return fields.map((field) => fieldNames[field](family)).join(" . ");
}

const fieldNames: Record<Field, (family: NftFamily) => string> = {
  saddr: (family) => `${family} saddr`,
  daddr: (family) => `${family} daddr`,
  l4proto: () => "meta l4proto",
  dport: () => "th dport",
};

function printSeconds(seconds: number): string {
  const units = [
    ["d", 86400],
    ["h", 3600],
    ["m", 60],
    ["s", 1],
  ] as const;
  let rest = seconds;
  let text = "";
  for (const [unit, size] of units) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text === "" ? "0s" : text;
}

function hex(mark: number): string {
  return `0x${mark.toString(16).padStart(8, "0")}`;
}

/** Callers pass only text that cannot contain a quote: names of Services, interfaces and our own text. */
function quote(text: string): string {
  return `"${text.replaceAll('"', "")}"`;
}

function byName<T>(values: Iterable<T>, nameOf: (value: T) => string): T[] {
  return [...values].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}
