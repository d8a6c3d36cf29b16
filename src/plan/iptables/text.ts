// The text of one rule: as kube-proxy feeds it to `iptables-restore`, and as `iptables-save` prints it back.
import { type Address, type Family, hostCidr, joinHostPort } from "../../model/address.ts";
import type { Protocol } from "../../model/snapshot.ts";
import { savedProbability, writtenProbability } from "./probability.ts";
import type { Match, Rule, Target } from "./types.ts";

/** As input of `iptables-restore`, without its chain. */
export function ruleInput(rule: Rule): string {
  let text = "";
  for (const match of rule.match) text += `${inputText(match)} `;
  return rule.target.kind === "none" ? text.trimEnd() : text + inputTarget(rule.target);
}

/** As `iptables-save` prints it, without its chain: two rules are equal if these texts are. */
export function savedRule(rule: Rule, family: Family): string {
  let text = "";
  for (const kind of headKinds) {
    for (const match of rule.match) if (match.kind === kind) text += `${headText(match)} `;
  }
  for (const match of rule.match) {
    const ofModule = moduleText(match, rule, family);
    if (ofModule !== "") text += `${ofModule} `;
  }
  return rule.target.kind === "none" ? text.trimEnd() : text + savedTarget(rule.target, family);
}

function inputText(match: Match): string {
  switch (match.kind) {
    case "comment":
      return `-m comment --comment ${/[\s"'\\]/.test(match.text) ? inQuotes(match.text, /["\\]/g) : match.text}`;
    case "protocol":
      return `-m ${match.protocol} -p ${match.protocol}`;
    case "bareProtocol":
      return `-p ${match.protocol}`;
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
    case "state":
      return `-m state --state ${match.states}`;
    case "notBridged":
      return "-m physdev ! --physdev-is-in";
    case "localAddress":
      return `-m addrtype ${not(match)}--${match.side}-type LOCAL`;
    case "set":
      return `-m set --match-set ${match.name} ${match.sides}`;
    case "ipvs":
      return `-m ipvs --vaddr ${match.address} --vproto ${match.protocol} --vport ${match.port}`;
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

function inputTarget(target: Exclude<Target, { kind: "none" }>): string {
  switch (target.kind) {
    case "jump":
      return `-j ${target.chain}`;
    case "accept":
    case "drop":
    case "reject":
    case "return":
      return `-j ${target.kind.toUpperCase()}`;
    case "setMark":
      return `-j MARK --or-mark ${wideHex(target.mark)}`;
    case "flipMark":
      return `-j MARK --xor-mark ${wideHex(target.mark)}`;
    case "masquerade":
      return `-j MASQUERADE${target.randomPorts ? " --random-fully" : ""}`;
    case "dnat":
      return `-j DNAT --to-destination ${joinHostPort(target.address, target.port)}`;
    case "redirect":
      return `-j REDIRECT --to-ports ${target.port}`;
  }
}

/** What `iptables-save` moves to the front of a rule, in its order. */
const headKinds = ["source", "destination", "inInterface", "protocol", "bareProtocol"] as const;

function headText(match: Extract<Match, { kind: (typeof headKinds)[number] }>): string {
  switch (match.kind) {
    case "source":
      return `${not(match)}-s ${asCidr(match.cidr)}`;
    case "destination":
      return `${not(match)}-d ${asCidr(match.cidr)}`;
    case "inInterface":
      return `${not(match)}-i ${match.name}`;
    case "protocol":
    case "bareProtocol":
      return `-p ${match.protocol}`;
  }
}

function moduleText(match: Match, rule: Rule, family: Family): string {
  switch (match.kind) {
    case "source":
    case "destination":
    case "inInterface":
    case "destinationPort":
    case "bareProtocol":
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
    case "state":
    case "notBridged":
    case "localAddress":
    case "set":
      return inputText(match);
    case "ipvs":
      return `-m ipvs --vproto ${protocolNumbers[match.protocol]} --vaddr ${match.address} --vport ${match.port}`;
  }
}

function savedTarget(target: Exclude<Target, { kind: "none" }>, family: Family): string {
  switch (target.kind) {
    case "reject":
      return `-j REJECT --reject-with ${family === "ipv4" ? "icmp" : "icmp6"}-port-unreachable`;
    case "setMark":
      return `-j MARK --set-xmark ${hex(target.mark)}/${hex(target.mark)}`;
    case "flipMark":
      return `-j MARK --set-xmark ${hex(target.mark)}/0x0`;
    case "jump":
    case "accept":
    case "drop":
    case "return":
    case "masquerade":
    case "dnat":
    case "redirect":
      return inputTarget(target);
  }
}

export const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const satisfies Record<Protocol, number>;

const recentScope = {
  ipv4: "--mask 255.255.255.255 --rsource",
  ipv6: "--mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource",
} as const satisfies Record<Family, string>;

function savedString(text: string): string {
  return /^[\w-]+$/.test(text) ? text : inQuotes(text, /["'\\]/g);
}

/** `special`: what needs a backslash there. */
function inQuotes(text: string, special: RegExp): string {
  return `"${text.replace(special, "\\$&")}"`;
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
