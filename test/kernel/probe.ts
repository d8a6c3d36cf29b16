// Sends the packets of a case through the world and returns the results in the terms of the truth tables.
import { setTimeout as sleep } from "node:timers/promises";
import { type Address, familyOf, isLoopback, joinHostPort } from "../../src/model/address.ts";
import { gateway, inFamily, nodeAddresses, placeOf, places } from "../places.ts";
import { caseText, type ExpectedOutcome, type PacketCase } from "../scenarios.ts";
import { tryCraftedSyn } from "./crafted.ts";
import { type Flow, readFlows } from "./flows.ts";
import type { Endpoint } from "./libc.ts";
import { resultText, type Sender, type SendResult, tryOnce } from "./send-packet.ts";
import type { World } from "./world.ts";

/** What is sent: from where to where. */
export type Probe = Pick<PacketCase, "from" | "to">;

/** `10.180.0.1:8080 keep`, `10.180.0.1:8080 masquerade`, `reject`, `drop`, `pass`, or something unexpected. */
export type Seen = string;

/** Sends the packets of a case until everything expected was seen; null when all is as expected, else what is not. */
export async function check(world: World, probe: Probe, outcome: ExpectedOutcome): Promise<string | null> {
  const expected = expectedSights(outcome);
  const seen = new Map<Seen, number>();
  // Two endpoints, uniform choice: 40 connections miss one with a probability of 10⁻¹².
  for (let sent = 0; sent < 40; ) {
    const first = Math.max(2, expected.length * 4) * (outcome.kind === "forward" ? 1 : 0.5);
    // Who takes turns gives two callers in step one endpoint each: later ones fall out of step.
    if (sent > 0) await sleep(Math.random() * 200);
    const batch = sent === 0 ? first : 1 + Math.random() * 15;
    for (const sight of await send(world, probe, Math.ceil(batch)))
      seen.set(sight, (seen.get(sight) ?? 0) + 1);
    sent += Math.ceil(batch);
    if ([...seen.keys()].some((sight) => !expected.includes(sight))) break;
    if (expected.every((sight) => seen.has(sight))) return null;
  }
  const sights = [...seen].map(([sight, count]) => `${sight} ×${count}`).join(", ");
  return `${caseText(probe)}: expected ${expected.join(", ")}; seen ${sights}`;
}

/** Sends a number of packets in parallel and returns the result of each. */
export function send(world: World, probe: Probe, count: number): Promise<Seen[]> {
  return Promise.all(Array.from({ length: count }, () => sendOne(world, probe)));
}

function expectedSights(outcome: ExpectedOutcome): Seen[] {
  if (outcome.kind !== "forward") return [outcome.kind];
  return outcome.choices.map(({ endpoint, masquerade, bypassed }) =>
    sightOf(endpoint, masquerade ? "masquerade" : "keep", bypassed),
  );
}

function sightOf(endpoint: string, source: string, bypassed: boolean): Seen {
  return `${endpoint} ${source}${bypassed ? " bypassed" : ""}`;
}

async function sendOne(world: World, probe: Probe): Promise<Seen> {
  const result = await resultOf(world, probe);
  switch (result.kind) {
    case "answered":
      return probe.to.protocol === "icmp"
        ? "pass"
        : sightOf(result.endpoint, sourceSeen(result.saw, result.client), false);
    case "icmp":
      return icmpSight(result);
    case "errno":
      if (isTcpEnd(result.errno)) return "close";
      // A reset by the node's own stack: no rule matched.
      return result.errno === "ECONNREFUSED" && isNodeAddress(probe.to.address) ? "pass" : resultText(result);
    case "silence":
      return silenceSight(world, result.client, probe.to);
  }
}

/** The connection was accepted and closed without data. */
function isTcpEnd(errno: string): boolean {
  return errno === "EOF" || errno === "ECONNRESET";
}

/** Sends one packet and returns its result. */
export function resultOf(world: World, { from, to }: Probe, timeoutMs?: number): Promise<SendResult> {
  const sender = senderAt(world, from.address);
  if (sender.netns === world.at.X && isLoopback(to.address)) {
    return tryCraftedSyn({ ...sender, source: from.address }, to);
  }
  return tryOnce(sender, to.protocol, to, timeoutMs);
}

/** Who sends with this address; only the outside has more than one to choose from. */
export function senderAt(world: World, address: Address): Sender {
  const place = placeOf(address);
  if (place === null) throw new Error(`Cannot send from ${address}: not in the reference set-up`);
  return { netns: world.at[place], poller: world.poller, source: place === "X" ? address : null };
}

function icmpSight(result: SendResult & { kind: "icmp" }): Seen {
  const { type, code, from } = result.error;
  const unreachablePort = from.includes(":") ? type === 1 && code === 4 : type === 3 && code === 3;
  if (!unreachablePort) return "pass";
  const bystanders = [gateway, places.RN, places.L1, places.L2, places.R1, places.R2];
  return bystanders.some((address) => inFamily(address, familyOf(from)) === from)
    ? resultText(result)
    : "reject";
}

/** A packet that was sent on although no answer came has left a tracked flow; a dropped one has not. */
function silenceSight(world: World, client: Endpoint, sentTo: Endpoint): Seen {
  const flow = flowsNow(world).find(({ from, to }) => isSame(from, client) && isSame(to, sentTo));
  if (flow === undefined || flow.answerFrom.address === flow.to.address) return "drop";
  const { address, port } = flow.answerFrom;
  // On the node, only a relay that has no endpoint leaves a datagram unanswered.
  if (isNodeAddress(address)) return "close";
  return sightOf(joinHostPort(address, port), sourceSeen(flow.answerTo, client), true);
}

const lastRead = new WeakMap<World, readonly Flow[]>();

/** Packets sent in parallel are given up in the same turn of the event loop: all of that turn share one reading. */
function flowsNow(world: World): readonly Flow[] {
  const known = lastRead.get(world);
  if (known !== undefined) return known;
  const flows = readFlows(world.node);
  lastRead.set(world, flows);
  setImmediate(() => lastRead.delete(world));
  return flows;
}

function isSame(a: Endpoint, b: Endpoint): boolean {
  return a.address === b.address && a.port === b.port;
}

function sourceSeen(saw: Endpoint, client: Endpoint): string {
  if (saw.address === client.address && (saw.port === client.port || !isNodeAddress(saw.address)))
    return "keep";
  return isNodeAddress(saw.address) ? "masquerade" : `seen as ${saw.address}`;
}

function isNodeAddress(address: Address): boolean {
  return isLoopback(address) || nodeAddresses.some((own) => inFamily(own, familyOf(address)) === address);
}
