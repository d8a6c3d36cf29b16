// What would change without a pod, a node or a zone: as `turnout whatif` computes it, and for one packet before and after.
import { trace } from "../../explain/trace.ts";
import { partsWithout, type WhatIf, whatIfInSteps, withoutEndpoints } from "../../explain/what-if.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import { type Gone, goneOf, knownPlaces } from "../../inspect/what-if.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { inTurns } from "../../model/steps.ts";
import { type ViewAnswer, viewAnswer, viewError } from "../../observe/status/page-views.ts";
import type { PacketOutlook, PlacesView, WhatIfView } from "../json.ts";
import type { PageNode } from "../node.ts";
import { pictureOfPacket } from "./packet-picture.ts";
import { type Asked, notReadYet, packetOf, routesOf } from "./question.ts";
import { explained } from "./try-packet.ts";

/** Of the changes, as many as have this number of shares together are sent: the page shows the first few. */
const mostShares = 2_000;
const mostPlaces = 200;
/** Pods that are named are looked up. */
const lookupMs = 4_000;

/** What can be taken away: nodes and zones of the cluster. */
export async function placesView(node: PageNode): Promise<ViewAnswer> {
  const snapshot = node.snapshot();
  if (snapshot === null) return viewError(503, notReadYet);
  const places = await knownPlaces({ spec: node.spec, node: node.name }, snapshot);
  const zones = [...new Set(places.map(({ zone }) => zone))].filter((zone) => zone !== "").sort();
  const names = places.map(({ nodeName }) => nodeName);
  const view: PlacesView = { nodes: names.slice(0, mostPlaces), zones: zones.slice(0, mostPlaces) };
  return viewAnswer(200, view);
}

export async function whatIfView(node: PageNode, query: URLSearchParams): Promise<ViewAnswer> {
  const without = query
    .getAll("without")
    .flatMap((text) => text.split(","))
    .filter((text) => text !== "");
  if (without.length === 0) return viewError(400, "without is required, for example without=node/node-b");
  const asked = query.has("to") ? packetOf(node, query) : null;
  if (asked?.ok === false) return asked.answer;
  const snapshot = node.snapshot();
  if (snapshot === null) return viewError(503, notReadYet);
  try {
    const gone = await goneNow(node, snapshot, without);
    const answer = await compared(snapshot, gone);
    const view: WhatIfView = {
      ...limited(answer),
      packet: asked === null ? null : outlookOf(node, asked.value, gone),
    };
    return viewAnswer(200, view);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return viewError(400, error.message);
  }
}

async function goneNow(node: PageNode, snapshot: Snapshot, without: readonly string[]): Promise<Gone> {
  const cluster = { spec: node.spec, node: node.name };
  const places = await knownPlaces(cluster, snapshot);
  return goneOf(cluster, snapshot, places, without, AbortSignal.timeout(lookupMs));
}

/** As answerWhatIf does, in steps. */
async function compared(snapshot: Snapshot, gone: Gone): Promise<WhatIf> {
  const { before, after } = await inTurns(partsWithout(snapshot, gone.has));
  return inTurns(whatIfInSteps(before, after, gone.remaining));
}

function limited(answer: WhatIf): Pick<WhatIfView, "answer" | "moreChanges"> {
  let shares = 0;
  const shown = answer.changes.filter(({ from }, i) => {
    for (const group of from) shares += group.shares.length;
    return i === 0 || shares <= mostShares;
  });
  return { answer: { ...answer, changes: shown }, moreChanges: answer.changes.length - shown.length };
}

function outlookOf(node: PageNode, asked: Asked, gone: Gone): PacketOutlook {
  const before = explained(node, asked);
  if (gone.hasNode(node.name)) return { before, after: null };
  const routes = routesOf(withoutEndpoints(asked.part, gone.has), asked.routes);
  const found = trace(node.mode, routes[asked.family], asked.packet);
  const picture = pictureOfPacket(node.mode, asked, found, { has: gone.has, reason: "gone" });
  return { before, after: { mode: node.mode.name, ...found, picture } };
}
