// Conversations that continue while the cluster changes: an old connection must have the same result in both worlds too.
import { setTimeout as sleep } from "node:timers/promises";
import { familyOf } from "../../src/model/address.ts";
import { type Conversation, openConversation } from "../kernel/conversation.ts";
import type { World } from "../kernel/world.ts";
import { inFamily } from "../places.ts";
import type { Random } from "../reference/random.ts";
import type { Sides } from "./arena.ts";
import { type Cell, cellText } from "./cells.ts";
import type { Difference } from "./oracle.ts";

/** One conversation in each world, with the same endpoint. */
export type Held = {
  readonly cell: Cell;
  readonly endpoint: string;
  readonly talkers: readonly [Conversation, Conversation];
};

const most = 30;

/** Opens some in both worlds; those that chance leads to different endpoints are closed again. */
export async function hold(
  sides: Sides,
  answered: readonly Cell[],
  random: Random,
): Promise<readonly Held[]> {
  const cells = answered.filter(({ protocol }) => protocol !== "sctp");
  const opened = random.sample(cells, most).map((cell) => ({
    cell,
    talkers: [open(sides[0].world, cell), open(sides[1].world, cell)] as const,
  }));
  const held: Held[] = [];
  for (const { cell, talkers, endpoints } of await Promise.all(
    opened.map(async (one) => ({ ...one, endpoints: await talk(one.talkers) })),
  )) {
    const [endpoint, other] = endpoints;
    if (endpoint === other && endpoint.includes(":")) held.push({ cell, endpoint, talkers });
    else for (const talker of talkers) talker.close();
  }
  return held;
}

/**
 * Flows that lead nowhere now are cut a moment after the rules have changed, so a difference counts when it stays.
 * Those that `mayOutlive` only kube-proxy keeps are passed over.
 */
export async function compareHeld(
  held: readonly Held[],
  mayOutlive: (cell: Cell) => boolean,
): Promise<readonly Difference[]> {
  const deadline = Date.now() + 5000;
  let open = held.filter(({ cell }) => !mayOutlive(cell));
  let differences: readonly Difference[] = [];
  while (open.length > 0 && Date.now() < deadline) {
    const results = await Promise.all(
      open.map(async (one) => ({
        one,
        results: (await talk(one.talkers)).map((reply) => resultOf(reply, one)),
      })),
    );
    const differing = results.filter(({ results: [theirs, ours] }) => theirs !== ours);
    open = differing.map(({ one }) => one);
    differences = differing.map(({ one, results: [theirs, ours] }) => differenceOf(one, theirs!, ours!));
    await sleep(200);
  }
  return differences;
}

export function release(held: readonly Held[]): void {
  for (const { talkers } of held) for (const talker of talkers) talker.close();
}

function open(world: World, { from, protocol, to }: Cell): Conversation {
  const source = from.source === null ? null : inFamily(from.source, familyOf(to.address));
  const sender = { netns: world.at[from.place], poller: world.poller, source };
  return openConversation(sender, protocol === "udp" ? "udp" : "tcp", to);
}

async function talk(talkers: Held["talkers"]): Promise<readonly [string, string]> {
  return Promise.all([talkers[0].talk(), talkers[1].talk()]);
}

/** A flow that is cut has the result of a new one: one of several endpoints, at random. */
function resultOf(reply: string, { endpoint }: Held): string {
  return reply === endpoint ? `stays with ${endpoint}` : "leaves it";
}

function differenceOf({ cell, endpoint }: Held, theirs: string, ours: string): Difference {
  const text = `${cellText(cell)}, held open with ${endpoint}`;
  return { service: cell.service, text: `${text}\n    kube-proxy: ${theirs}\n    ours:       ${ours}` };
}
