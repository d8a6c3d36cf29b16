// Runs `explain` for a cell as a user would, sends the packets, and returns where the two disagree.

import type { ModeName } from "../../src/config/modes.ts";
import { parseFrom, parseTo } from "../../src/explain/question.ts";
import { type BothRoutes, questionOf, type Sender } from "../../src/explain/resolve.ts";
import { type Candidate, type Trace, trace } from "../../src/explain/trace.ts";
import { familyOf, joinHostPort } from "../../src/model/address.ts";
import { modes } from "../../src/modes/index.ts";
import { type Cell, cellText, hasManyAddresses } from "../differential/cells.ts";
import { inFamily, interfaceOf, outsideAddresses, placeOf, places } from "../places.ts";
import { type Probe, type Seen, send } from "./probe.ts";
import { nodeServerPort, type World } from "./world.ts";

/** The Trace of `turnout explain FROM TO`. */
export function explained(routes: BothRoutes, mode: ModeName, cell: Cell): Trace {
  const { to, protocol } = cell;
  const from = parseFrom(fromText(cell, routes));
  const target = parseTo(`${joinHostPort(to.address, to.port)}/${protocol}`);
  if (!from.ok || !target.ok) throw new Error(`Cannot explain ${cellText(cell)}`);
  const question = questionOf(from.value as Sender, target.value, routes);
  if (!question.ok) throw new Error(question.reason);
  const { family, packet } = question.value;
  return trace(modes[mode], routes[family], packet);
}

/** Sends packets until every candidate was seen; null when `explain` was right, else what was seen instead. */
export async function contradiction(world: World, cell: Cell, traced: Trace): Promise<string | null> {
  const expected = expectedSights(traced, cell);
  const seen = new Map<Seen, number>();
  for (let tries = 0; tries < most(cell, expected.length); ) {
    const batch = expected.length === 1 ? 2 : expected.length * 4;
    const sent = probes(cell, tries, batch).map((probe) => send(world, probe, 1));
    for (const sight of (await Promise.all(sent)).flat()) seen.set(sight, (seen.get(sight) ?? 0) + 1);
    tries += batch;
    if ([...seen.keys()].some((sight) => !expected.flat().includes(sight))) break;
    if (isEnough(cell, expected, seen)) return null;
  }
  const sights = [...seen].map(([sight, count]) => `${sight} ×${count}`).join(", ");
  const outcomes = expected.map((each) => each[0]).join(", ");
  return `${cellText(cell)}\n  explained: ${outcomes}\n  seen:      ${sights}\n  because:   ${traced.because.join("; ")}`;
}

/** As a user would write it: the pods and the node by name, other senders by address. */
function fromText({ from, to }: Cell, routes: BothRoutes): string {
  const family = familyOf(to.address);
  const address = inFamily(from.source ?? places[from.place], family);
  const { detector } = routes[family].settings;
  // A sender whose packets do not arrive through the bridge is no pod of the node, wherever it runs.
  if (detector.kind === "interface" && detector.name !== interfaceOf(from.place) && from.place !== "host")
    return `outside:${address}`;
  switch (from.place) {
    case "host":
      return "node";
    case "L1":
    case "L2":
    case "R1":
    case "R2":
      return `pod:${address}`;
    case "RN":
    case "X":
      return `outside:${address}`;
  }
}

/** A client with session affinity reaches other endpoints only from other addresses. */
function probes(cell: Cell, start: number, count: number): Probe[] {
  const { from, to, protocol, sticky } = cell;
  const family = familyOf(to.address);
  const clients = sticky && hasManyAddresses(from) ? outsideAddresses.slice(2) : null;
  return Array.from({ length: count }, (_, i) => {
    const address = clients?.[(start + i) % clients.length] ?? from.source ?? places[from.place];
    return { from: { kind: "outside", address: inFamily(address, family) }, to: { ...to, protocol } };
  });
}

/** Tries after which a candidate is missed less than once in ten million times. */
function most({ sticky }: Cell, candidates: number): number {
  if (candidates === 1) return 2;
  return sticky ? 26 : Math.ceil(Math.log(1e-7 / candidates) / Math.log(1 - 1 / candidates));
}

/** Affinity hides candidates: one address sees one, many see more than one. */
function isEnough(cell: Cell, expected: readonly Sights[], seen: ReadonlyMap<Seen, number>): boolean {
  const met = expected.filter((sights) => sights.some((sight) => seen.has(sight)));
  if (!cell.sticky) return met.length === expected.length;
  return hasManyAddresses(cell.from) ? met.length >= Math.min(2, expected.length) : met.length === 1;
}

/** The forms that one result may have. */
type Sights = readonly Seen[];

function expectedSights({ outcome, candidates }: Trace, cell: Cell): readonly Sights[] {
  const { protocol } = cell;
  if (outcome === "pass") return [["pass", ...nobodyListens(cell)]];
  if (outcome !== "forward") return [[outcome]];
  return candidates.map((candidate) => {
    const sight = `${candidate.endpoint} ${candidate.masquerade ? "masquerade" : "keep"}`;
    return isServed(candidate, protocol) ? [sight, `${sight} bypassed`] : [sight, ...unserved[protocol]];
  });
}

/** The result of a packet to the node itself without a rule and without a listener. */
function nobodyListens({ from, to, protocol }: Cell): Sights {
  if (placeOf(to.address) !== "host") return [];
  if (protocol === "udp") return ["reject"];
  // The sender's own raw socket receives the packet, so that the kernel sends no error.
  return protocol === "sctp" && from.place === "host" ? ["drop"] : [];
}

/** On the node itself a program answers on one port only. */
function isServed({ endpoint }: Candidate, protocol: Cell["protocol"]): boolean {
  const [, address = "", port] = /^\[?(.*?)\]?:(\d+)$/.exec(endpoint) ?? [];
  return placeOf(address) !== "host" || (Number(port) === nodeServerPort && protocol !== "sctp");
}

/** How the node's own stack, or a relay that connects to it, reports that there is no listener. */
const unserved: Readonly<Record<Cell["protocol"], Sights>> = {
  tcp: ["ECONNREFUSED", "pass", "close"],
  udp: ["reject", "drop"],
  sctp: ["pass"],
};
