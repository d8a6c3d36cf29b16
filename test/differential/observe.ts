// The results of packets in one cell: each distinct outcome of several tries, as text to compare two worlds.
import { familyOf } from "../../src/model/address.ts";
import { type SendResult, tryOnce } from "../kernel/send-packet.ts";
import type { World } from "../kernel/world.ts";
import { inFamily, outsideAddresses, placeOf } from "../places.ts";
import { type Cell, hasManyAddresses } from "./cells.ts";

/** Distinct outcomes: `L1:8080 kept`, `R1:8080 masqueraded`, `icmp 3/3`, `ECONNREFUSED`, `silence`. */
export type Outcomes = Set<string>;

/** Sends packets in one cell and adds their results. */
export async function observe(world: World, cell: Cell, tries: number, outcomes: Outcomes): Promise<void> {
  const results = await Promise.all(Array.from({ length: tries }, (_, i) => once(world, cell, i)));
  for (const result of results) outcomes.add(outcomeOf(result, cell));
}

function once(world: World, { from, to, protocol, sticky }: Cell, attempt: number): Promise<SendResult> {
  const family = familyOf(to.address);
  // Affinity sticks to the client's address: the outside has many, and so shows all that can be chosen.
  const many = sticky && hasManyAddresses(from);
  const source = many ? outsideAddresses[2 + (attempt % (outsideAddresses.length - 2))]! : from.source;
  const sender = {
    netns: world.at[from.place],
    poller: world.poller,
    source: source === null ? null : inFamily(source, family),
  };
  return tryOnce(sender, protocol, to);
}

function outcomeOf(result: SendResult, cell: Cell): string {
  switch (result.kind) {
    case "answered":
      return `${endpointText(result.endpoint)} ${sourceText(result, cell)}`;
    case "icmp":
      return `icmp ${result.error.type}/${result.error.code}`;
    case "errno":
      return result.errno;
    case "silence":
      return "silence";
  }
}

function endpointText(endpoint: string): string {
  const colon = endpoint.lastIndexOf(":");
  const address = endpoint.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  return `${placeOf(address) ?? address}:${endpoint.slice(colon + 1)}`;
}

function sourceText({ saw, client }: SendResult & { kind: "answered" }, { from }: Cell): string {
  const same = saw.address === client.address;
  if (same && (from.place !== "host" || saw.port === client.port)) return "kept";
  return placeOf(saw.address) === "host" ? "masqueraded" : `seen as ${saw.address}`;
}
