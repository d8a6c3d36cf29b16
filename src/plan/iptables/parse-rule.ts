// Reads one rule as any version of `iptables-save` prints it.
import { networkAddress, parseAddress, parseCidr, prefixLength } from "../../model/address.ts";
import { type Protocol, protocols } from "../../model/snapshot.ts";
import { protocolNumbers } from "./text.ts";
import type { Match, Rule, Target } from "./types.ts";

/** A rule without its chain; null: it contains something that our rules never do. */
export function parseRule(text: string): Rule | null {
  const words = new Words(text);
  const match: Match[] = [];
  let protocol: Protocol | null = null;
  while (!words.atEnd) {
    if (words.skip("-j")) {
      const target = readTarget(words);
      return target === null || !words.atEnd ? null : { match: withProtocol(match, protocol), target };
    }
    const not = words.skip("!");
    const option = words.next();
    if (option === "-p" && !not) {
      protocol = protocolOf(words.next());
      if (protocol === null) return null;
      continue;
    }
    const read = option === "-m" ? readModule(words, protocol) : readPlain(option, not, words);
    if (read === null) return null;
    match.push(read);
  }
  return { match: withProtocol(match, protocol), target: { kind: "none" } };
}

/** A protocol without a match of its module is a match of its own. */
function withProtocol(match: readonly Match[], protocol: Protocol | null): readonly Match[] {
  if (protocol === null || match.some(({ kind }) => kind === "protocol")) return match;
  return [{ kind: "bareProtocol", protocol }, ...match];
}

/** By its name, or by the number that some modules print. */
function protocolOf(text: string): Protocol | null {
  return protocols.find((name) => name === text || protocolNumbers[name] === Number(text)) ?? null;
}

/** The arguments of a rule, read from left to right. */
class Words {
  readonly #words: readonly string[];
  #at = 0;

  constructor(text: string) {
    this.#words = [...text.matchAll(/"((?:[^"\\]|\\.)*)"|\S+/g)].map(([word, quoted]) =>
      quoted === undefined ? word : quoted.replace(/\\(.)/g, "$1"),
    );
  }

  get atEnd(): boolean {
    return this.#at >= this.#words.length;
  }

  next(): string {
    return this.#words[this.#at++] ?? "";
  }

  skip(word: string): boolean {
    if (this.#words[this.#at] !== word) return false;
    this.#at++;
    return true;
  }

  /** Reads `option value`; null if something else is there. */
  value(option: string): string | null {
    return this.skip(option) ? this.next() : null;
  }
}

function readPlain(option: string, not: boolean, words: Words): Match | null {
  switch (option) {
    case "-s":
    case "-d": {
      const cidr = readNetwork(words.next());
      return cidr === null ? null : { kind: option === "-s" ? "source" : "destination", cidr, not };
    }
    case "-i":
      return { kind: "inInterface", name: words.next(), not };
    case "--dport": {
      const port = words.next();
      return /^\d+$/.test(port) && !not ? { kind: "destinationPort", port: Number(port) } : null;
    }
    default:
      return null;
  }
}

/** Of one address just the address: `10.0.0.1/32` is `10.0.0.1`. */
function readNetwork(text: string): string | null {
  if (!text.includes("/")) return parseAddress(text);
  const cidr = parseCidr(text);
  if (cidr === null) return null;
  return prefixLength(cidr) === (cidr.includes(":") ? 128 : 32) ? networkAddress(cidr) : cidr;
}

function readModule(words: Words, protocol: Protocol | null): Match | null {
  const module = words.next();
  switch (module) {
    case "comment": {
      const text = words.value("--comment");
      return text === null ? null : { kind: "comment", text };
    }
    case "mark": {
      const not = words.skip("!");
      const [mark, mask] = (words.value("--mark") ?? "").split("/");
      return mark === mask ? { kind: "mark", mark: Number(mark), not } : null;
    }
    case "conntrack": {
      const not = words.skip("!");
      const states = words.value("--ctstate");
      return states === null ? null : { kind: "ctstate", states, not };
    }
    case "state": {
      const states = words.value("--state");
      return states === null ? null : { kind: "state", states };
    }
    case "physdev":
      return words.skip("!") && words.skip("--physdev-is-in") ? { kind: "notBridged" } : null;
    case "addrtype":
      return readAddressType(words);
    case "set": {
      const name = words.value("--match-set");
      return name === null ? null : { kind: "set", name, sides: words.next() };
    }
    case "ipvs":
      return readIpvs(words);
    case "statistic": {
      const random = words.value("--mode") === "random";
      const chance = Number(words.value("--probability"));
      return random && chance > 0 ? { kind: "random", oneIn: Math.round(1 / chance) } : null;
    }
    case "recent":
      return readRecent(words);
    case "nfacct": {
      const name = words.value("--nfacct-name");
      return name === null ? null : { kind: "counter", name };
    }
    default:
      return readProtocol(module, protocol);
  }
}

function readAddressType(words: Words): Match | null {
  const not = words.skip("!");
  if (words.value("--dst-type") === "LOCAL") return { kind: "localAddress", side: "dst", not };
  return words.value("--src-type") === "LOCAL" ? { kind: "localAddress", side: "src", not } : null;
}

function readIpvs(words: Words): Match | null {
  const protocol = protocolOf(words.value("--vproto") ?? "");
  const address = parseAddress((words.value("--vaddr") ?? "").replace(/\/(32|128)$/, ""));
  const port = Number(words.value("--vport"));
  return protocol === null || address === null || !(port > 0)
    ? null
    : { kind: "ipvs", address, protocol, port };
}

function readProtocol(module: string, protocol: Protocol | null): Match | null {
  return protocol === null || module !== protocol ? null : { kind: "protocol", protocol };
}

function readRecent(words: Words): Match | null {
  const remember = words.skip("--set");
  const seconds = words.skip("--rcheck") ? Number(words.value("--seconds")) : 0;
  if (!remember && !(seconds > 0 && words.skip("--reap"))) return null;
  const list = words.value("--name");
  const whole = /^(255\.255\.255\.255|ffff(:ffff){7})$/.test(words.value("--mask") ?? "");
  if (list === null || !whole || !words.skip("--rsource")) return null;
  return remember ? { kind: "remember", list } : { kind: "recentlySeen", list, seconds };
}

function readTarget(words: Words): Target | null {
  const name = words.next();
  switch (name) {
    case "ACCEPT":
      return { kind: "accept" };
    case "DROP":
      return { kind: "drop" };
    case "RETURN":
      return { kind: "return" };
    case "REJECT":
      return /^icmp6?-port-unreachable$/.test(words.value("--reject-with") ?? "") ? { kind: "reject" } : null;
    case "MASQUERADE":
      return { kind: "masquerade", randomPorts: words.skip("--random-fully") };
    case "MARK":
      return readMark(words);
    case "DNAT":
      return readDestination(words.value("--to-destination") ?? "");
    case "REDIRECT": {
      const port = Number(words.value("--to-ports"));
      return port > 0 ? { kind: "redirect", port } : null;
    }
    default:
      return /^[A-Z]+$/.test(name) ? null : { kind: "jump", chain: name };
  }
}

function readMark(words: Words): Target | null {
  const [value, mask] = (words.value("--set-xmark") ?? "").split("/").map(Number);
  if (value === mask) return { kind: "setMark", mark: value! };
  return mask === 0 ? { kind: "flipMark", mark: value! } : null;
}

function readDestination(text: string): Target | null {
  const colon = text.lastIndexOf(":");
  const address = parseAddress(text.slice(0, colon).replace(/^\[(.*)\]$/, "$1"));
  const port = Number(text.slice(colon + 1));
  return address === null || !(port > 0) ? null : { kind: "dnat", address, port };
}
