// The text of rules: as kube-proxy feeds them to `iptables-restore`, and as `iptables-save` prints them back.
import type { Address, Family } from "../../model/address.ts";
import { hostCidr, joinHostPort } from "../../model/address.ts";
import { savedProbability, writtenProbability } from "./probability.ts";
import {
  type Chain,
  type Match,
  type Plan,
  type Rule,
  type TableName,
  type Target,
  tableNames,
} from "./types.ts";

/** The whole Plan as `iptables-save` would show it on a host that holds nothing else. */
export function print(plan: Plan): string {
  return tableNames.map((table) => printTable(plan, table)).join("");
}

/** A rule as input of `iptables-restore`, without its chain. */
export function ruleInput(rule: Rule): string {
  return [...rule.match.map(inputWords), ...inputTarget(rule.target)].join(" ");
}

/** A rule as `iptables-save` prints it, without its chain: two rules are equal if these texts are. */
export function savedRule(rule: Rule, family: Family): string {
  const head = rule.match.map(headWords).filter((words) => words !== "");
  const order = (words: string) => headOrder.indexOf(words.replace("! ", "").slice(0, 2));
  head.sort((a, b) => order(a) - order(b));
  const modules = rule.match.map((match) => moduleWords(match, rule, family)).filter((words) => words !== "");
  return [...head, ...modules, ...savedTarget(rule.target, family)].join(" ");
}

/** Every chain the Plan holds in a table, sorted by name, with all its rules. */
export function chainsOf(plan: Plan, table: TableName): Chain[] {
  const chains = new Map<string, Chain>();
  const add = (chain: Chain) => {
    if (chain.table === table) chains.set(chain.name, chain);
  };
  for (const { table, name } of plan.base.present) add({ table, name, rules: [] });
  for (const chain of plan.base.fixed) add(chain);
  const fragments = [...plan.fragments.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  for (const shared of plan.base.shared) {
    const placed = fragments.flatMap((fragment) =>
      fragment.placed.filter((rule) => rule.table === shared.table && rule.chain === shared.name),
    );
    add({ ...shared, rules: [...placed.map(({ rule }) => rule), ...shared.rules] });
  }
  for (const fragment of fragments) for (const chain of fragment.chains) add(chain);
  return [...chains.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function printTable(plan: Plan, table: TableName): string {
  const chains = chainsOf(plan, table);
  const jumps = plan.base.jumps.filter((jump) => jump.table === table).reverse();
  const lines = [
    `*${table}`,
    ...chains.map(({ name }) => `:${name} - [0:0]`),
    ...builtInChains.flatMap((chain) =>
      jumps
        .filter((jump) => jump.chain === chain)
        .map(({ rule }) => `-A ${chain} ${savedRule(rule, plan.family)}`),
    ),
    ...chains.flatMap(({ name, rules }) => rules.map((rule) => `-A ${name} ${savedRule(rule, plan.family)}`)),
    "COMMIT",
  ];
  return `${lines.join("\n")}\n`;
}

const builtInChains = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];

function inputWords(match: Match): string {
  switch (match.kind) {
    case "comment":
      return `-m comment --comment ${match.text.includes(" ") ? `"${match.text}"` : match.text}`;
    case "protocol":
      return `-m ${match.protocol} -p ${match.protocol}`;
    case "source":
      return `${not(match)}-s ${match.cidr}`;
    case "destination":
      return `${not(match)}-d ${match.cidr}`;
    case "inInterface":
      return `${not(match)}-i ${match.name}`;
    case "destinationPort":
      return `--dport ${match.port}`;
    case "mark":
      return `-m mark ${not(match)}--mark ${wideHex(match.mark)}/${wideHex(match.mark)}`;
    case "ctstate":
      return `-m conntrack ${not(match)}--ctstate ${match.states}`;
    case "localAddress":
      return `-m addrtype --${match.side}-type LOCAL`;
    case "random":
      return `-m statistic --mode random --probability ${writtenProbability(match.oneIn)}`;
    case "recentlySeen":
      return `-m recent --name ${match.list} --rcheck --seconds ${match.seconds} --reap`;
    case "remember":
      return `-m recent --name ${match.list} --set`;
    case "counter":
      return `-m nfacct --nfacct-name ${match.name}`;
  }
}

function inputTarget(target: Target): string[] {
  switch (target.kind) {
    case "jump":
      return [`-j ${target.chain}`];
    case "accept":
    case "drop":
    case "reject":
    case "return":
      return [`-j ${target.kind.toUpperCase()}`];
    case "setMark":
      return [`-j MARK --or-mark ${wideHex(target.mark)}`];
    case "flipMark":
      return [`-j MARK --xor-mark ${wideHex(target.mark)}`];
    case "masquerade":
      return ["-j MASQUERADE --random-fully"];
    case "dnat":
      return [`-j DNAT --to-destination ${joinHostPort(target.address, target.port)}`];
    case "none":
      return [];
  }
}

const headOrder = ["-s", "-d", "-i", "-p"];

/** What `iptables-save` moves to the front of a rule; empty for everything else. */
function headWords(match: Match): string {
  switch (match.kind) {
    case "source":
      return `${not(match)}-s ${asCidr(match.cidr)}`;
    case "destination":
      return `${not(match)}-d ${asCidr(match.cidr)}`;
    case "inInterface":
      return `${not(match)}-i ${match.name}`;
    case "protocol":
      return `-p ${match.protocol}`;
    case "comment":
    case "destinationPort":
    case "mark":
    case "ctstate":
    case "localAddress":
    case "random":
    case "recentlySeen":
    case "remember":
    case "counter":
      return "";
  }
}

function moduleWords(match: Match, rule: Rule, family: Family): string {
  switch (match.kind) {
    case "source":
    case "destination":
    case "inInterface":
    case "destinationPort":
      return "";
    case "comment":
      return `-m comment --comment ${savedString(match.text)}`;
    case "protocol": {
      const port = rule.match.find(({ kind }) => kind === "destinationPort");
      return port?.kind === "destinationPort"
        ? `-m ${match.protocol} --dport ${port.port}`
        : `-m ${match.protocol}`;
    }
    case "mark":
      return `-m mark ${not(match)}--mark ${hex(match.mark)}/${hex(match.mark)}`;
    case "random":
      return `-m statistic --mode random --probability ${savedProbability(match.oneIn)}`;
    case "recentlySeen":
      return `-m recent --rcheck --seconds ${match.seconds} --reap --name ${match.list} ${recentScope[family]}`;
    case "remember":
      return `-m recent --set --name ${match.list} ${recentScope[family]}`;
    case "counter":
      return `-m nfacct --nfacct-name  ${match.name}`;
    case "ctstate":
    case "localAddress":
      return inputWords(match);
  }
}

function savedTarget(target: Target, family: Family): string[] {
  switch (target.kind) {
    case "reject":
      return [`-j REJECT --reject-with ${family === "ipv4" ? "icmp" : "icmp6"}-port-unreachable`];
    case "setMark":
      return [`-j MARK --set-xmark ${hex(target.mark)}/${hex(target.mark)}`];
    case "flipMark":
      return [`-j MARK --set-xmark ${hex(target.mark)}/0x0`];
    case "jump":
    case "accept":
    case "drop":
    case "return":
    case "masquerade":
    case "dnat":
    case "none":
      return inputTarget(target);
  }
}

const recentScope = {
  ipv4: "--mask 255.255.255.255 --rsource",
  ipv6: "--mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource",
} as const satisfies Record<Family, string>;

function savedString(text: string): string {
  return /^[\w-]+$/.test(text) ? text : `"${text.replace(/["'\\]/g, "\\$&")}"`;
}

function not(match: { readonly not: boolean }): string {
  return match.not ? "! " : "";
}

function asCidr(cidrOrAddress: Address): string {
  return cidrOrAddress.includes("/") ? cidrOrAddress : hostCidr(cidrOrAddress);
}

function hex(mark: number): string {
  return `0x${(mark >>> 0).toString(16)}`;
}

function wideHex(mark: number): string {
  return `0x${(mark >>> 0).toString(16).padStart(8, "0")}`;
}
