// Reads test/scenarios: clusters, their settings, and the results of packets.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, parse as parseYaml } from "yaml";
import { type Address, type Family, families, joinHostPort } from "../src/model/address.ts";
import type { Protocol } from "../src/model/snapshot.ts";
import { dualStack, type KubeObject, referenceObjects } from "./cluster.ts";
import { inFamily } from "./places.ts";
import { asRelayed } from "./relayed.ts";

export type ModeName = "nftables" | "iptables" | "ipvs" | "userspace";

export const modeNames: readonly ModeName[] = ["nftables", "iptables", "ipvs", "userspace"];

/** In userspace mode there is a relay: `relayed.ts` derives its results from the lines of the other modes. */
export const commonModes: readonly ModeName[] = ["nftables", "iptables", "ipvs"];

export type Scenario = {
  readonly name: string;
  /** Services and EndpointSlices in both families, the Node, the ServiceCIDR. */
  readonly objects: readonly KubeObject[];
  readonly settings: ScenarioSettings;
  readonly packets: readonly PacketCase[];
};

/** How the node is set up, where it differs from mode to mode or from scenario to scenario. */
export type ScenarioSettings = {
  /** How pods of this node are recognised. */
  readonly detector: "clusterCIDR" | "nodeCIDR" | "interfacePrefix" | "none";
  readonly masqueradeAll: boolean;
  /** As in KubeProxyConfiguration, IPv4 only; empty: the default of the mode. */
  readonly nodePortAddresses: readonly string[];
  /** Only iptables mode reads it. */
  readonly localhostNodePorts: boolean;
  readonly featureGates: Readonly<Record<string, boolean>>;
  /** What a foreign firewall does with forwarded packets. */
  readonly forwardPolicy: "ACCEPT" | "DROP";
};

const referenceSettings: ScenarioSettings = {
  detector: "clusterCIDR",
  masqueradeAll: false,
  nodePortAddresses: [],
  localhostNodePorts: true,
  featureGates: {},
  forwardPolicy: "ACCEPT",
};

/** One line of a truth table in one family. */
export type PacketCase = {
  readonly scenario: string;
  /** `packets.txt:12`, for messages. */
  readonly line: string;
  /** Rows of docs/spec/12 that it proves: `12/49`. */
  readonly rows: readonly string[];
  readonly family: Family;
  /** Modes that must agree. */
  readonly modes: readonly ModeName[];
  /** A deliberate difference: what we do, in place of the other line about this packet, which is what kube-proxy does. */
  readonly oursOnly: boolean;
  readonly from: { readonly kind: "pod" | "node" | "outside"; readonly address: Address };
  readonly to: { readonly address: Address; readonly port: number; readonly protocol: Protocol | "icmp" };
  readonly outcome: ExpectedOutcome;
};

export type ExpectedOutcome =
  | { readonly kind: "forward"; readonly choices: readonly ExpectedChoice[] }
  /** close: a relay of this node accepts the connection and forwards it to no endpoint. */
  | { readonly kind: "reject" | "drop" | "pass" | "close" };

export type ExpectedChoice = {
  /** `10.180.0.1:8080`. */
  readonly endpoint: string;
  readonly masquerade: boolean;
  /** The endpoint's answer does not come back through this node, so that no connection comes about. */
  readonly bypassed: boolean;
};

const root = join(import.meta.dirname, "scenarios");

export function scenarioNames(): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

export function readScenario(name: string): Scenario {
  const own = readObjects(name, "cluster.yaml").flatMap(dualStack);
  return {
    name,
    objects: [...referenceObjects(own), ...own],
    settings: { ...referenceSettings, ...(parseYaml(readText(name, "settings.yaml")) as object | null) },
    packets: parsePackets(name, readText(name, "packets.txt")),
  };
}

/** The objects of one YAML file of a scenario, as they are written. */
export function readObjects(scenario: string, file: string): KubeObject[] {
  return parseAllDocuments(readText(scenario, file)).flatMap((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    return (document.toJS() as KubeObject | null) ?? [];
  });
}

/** A one-line text of what a case claims: `pod 10.180.0.2 → 172.30.0.1:80/tcp`. */
export function caseText({ from, to }: Pick<PacketCase, "from" | "to">): string {
  return `${from.kind} ${from.address} → ${joinHostPort(to.address, to.port)}/${to.protocol}`;
}

/** Reads a truth table; a line for named modes replaces the general line of the same packet. */
export function parsePackets(scenario: string, text: string): PacketCase[] {
  const written = text.split("\n").flatMap((line, i) => {
    const [claim = "", comment = ""] = line.split("#");
    if (claim.trim() === "") return [];
    const at = `${scenario}/packets.txt:${i + 1}`;
    const { cases, forModes } = parseLine(claim.trim(), at);
    return cases.map((rest) => ({
      forModes,
      packet: { ...rest, scenario, line: at, rows: rowsIn(comment) } satisfies PacketCase,
    }));
  });
  return written.flatMap(({ packet, forModes }) => {
    if (forModes) return packet;
    const replaced = written
      .filter(
        (other) =>
          other.forModes && other.packet.oursOnly === packet.oursOnly && isSame(other.packet, packet),
      )
      .flatMap((other) => other.packet.modes);
    const modes = packet.modes.filter((mode) => !replaced.includes(mode));
    return modes.length === 0 ? [] : { ...packet, modes };
  });
}

/** The cases that hold for a program in a mode. */
export function casesFor(
  packets: readonly PacketCase[],
  mode: ModeName,
  program: "turnout" | "kube-proxy",
): PacketCase[] {
  if (mode === "userspace") {
    const named = packets.filter(({ modes }) => modes.includes(mode));
    const others = casesFor(packets, "iptables", program).filter(
      (packet) => !named.some((own) => isSame(own, packet)),
    );
    return [...others.map(asRelayed), ...named];
  }
  const ofMode = packets.filter(({ modes }) => modes.includes(mode));
  const theirs = ofMode.filter(({ oursOnly }) => !oursOnly);
  if (program === "kube-proxy") return theirs;
  const ours = ofMode.filter(({ oursOnly }) => oursOnly);
  return [...theirs.filter((packet) => !ours.some((own) => isSame(own, packet))), ...ours];
}

function isSame(a: PacketCase, b: PacketCase): boolean {
  return caseText(a) === caseText(b);
}

type ParsedLine = {
  readonly cases: readonly Omit<PacketCase, "scenario" | "line" | "rows">[];
  readonly forModes: boolean;
};

function parseLine(line: string, at: string): ParsedLine {
  const fail = (what: string): never => {
    throw new Error(`Cannot read ${at}: ${what}`);
  };
  const tagged = /^([a-z0-9 ,]+):\s+(.*)$/.exec(line);
  const tags = tagged?.[1]?.split(/[ ,]+/) ?? [];
  const known = [...modeNames, ...families, "turnout"] as readonly string[];
  for (const tag of tags) if (!known.includes(tag)) fail(`${tag} is neither a mode nor a family`);
  const [kind = "", address = "", to = "", ...outcome] = (tagged?.[2] ?? line).split(/\s+/);
  if (kind !== "pod" && kind !== "node" && kind !== "outside") return fail(`${kind} is no kind of sender`);
  if (!targetForm.test(to)) fail(`${to} is no destination`);
  const expected = parseOutcome(outcome) ?? fail(`${outcome.join(" ")} is no outcome`);
  const modes = modeNames.filter((mode) => tags.includes(mode));
  const ownFamilies = families.filter((family) => tags.includes(family));
  const cases = (ownFamilies.length === 0 ? families : ownFamilies).map((family) => ({
    modes: modes.length > 0 ? modes : commonModes,
    oursOnly: tags.includes("turnout"),
    family,
    from: { kind: kind as PacketCase["from"]["kind"], address: inFamily(address, family) },
    to: parseTarget(to, family),
    outcome: outcomeIn(expected, family),
  }));
  return { cases, forModes: modes.length > 0 };
}

const targetForm = /^(.+?)(?::(\d+))?\/(tcp|udp|sctp|icmp)$/;

/** `172.30.0.1:80/tcp`, in the given family. */
export function parseTarget(text: string, family: Family): PacketCase["to"] {
  const [, address = "", port = "0", protocol] = targetForm.exec(text) ?? [];
  return {
    address: inFamily(address.replace(/[[\]]/g, ""), family),
    port: Number(port),
    protocol: protocol as Protocol | "icmp",
  };
}

/** `forward LIST`, all kept; then `masquerade` for all or for a LIST, and `bypass LIST`. */
function parseOutcome([kind, ...words]: readonly string[]): ExpectedOutcome | null {
  if ((kind === "reject" || kind === "drop" || kind === "pass" || kind === "close") && words.length === 0)
    return { kind };
  if (kind !== "forward" || words[0] === undefined) return null;
  const lists = new Map<string, readonly string[]>();
  for (let i = 1; i < words.length; i++) {
    const word = words[i]!;
    if (word !== "masquerade" && word !== "bypass") return null;
    const list = /:\d/.test(words[i + 1] ?? "") ? words[++i]! : words[0];
    lists.set(word, list.split(","));
  }
  const has = (word: string, endpoint: string): boolean => lists.get(word)?.includes(endpoint) ?? false;
  return {
    kind: "forward",
    choices: words[0].split(",").map((endpoint) => ({
      endpoint,
      masquerade: has("masquerade", endpoint),
      bypassed: has("bypass", endpoint),
    })),
  };
}

function outcomeIn(outcome: ExpectedOutcome, family: Family): ExpectedOutcome {
  if (outcome.kind !== "forward") return outcome;
  return {
    kind: "forward",
    choices: outcome.choices.map((choice) => ({ ...choice, endpoint: endpointIn(choice.endpoint, family) })),
  };
}

function endpointIn(endpoint: string, family: Family): string {
  const { address, port } = parseTarget(`${endpoint}/tcp`, family);
  return joinHostPort(address, port);
}

function rowsIn(comment: string): string[] {
  return [...comment.matchAll(/12\/\d+/g)].map(([row]) => row);
}

/** The text of a file of a scenario; empty when it has none. */
export function readText(scenario: string, file: string): string {
  const path = join(root, scenario, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
