// The view "Try a packet": the Trace that `turnout explain` prints, on request compared with the kernel.
import { type From, parseFrom, parseTo, type To } from "../../explain/question.ts";
import { type BothRoutes, questionOf, type Sender } from "../../explain/resolve.ts";
import { trace } from "../../explain/trace.ts";
import { snapshotOf, viewFor } from "../../explain/view.ts";
import { HostError } from "../../host/error.ts";
import { families } from "../../model/address.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type ViewAnswer, viewAnswer, viewError } from "../../observe/status/page-views.ts";
import { route } from "../../routing/routes.ts";
import type { ExplainView } from "../json.ts";
import type { PageNode } from "../node.ts";

export async function tryPacket(node: PageNode, query: URLSearchParams): Promise<ViewAnswer> {
  const [from, to] = [parseFrom(query.get("from") ?? ""), parseTo(query.get("to") ?? "")];
  if (!from.ok) return viewError(400, from.reason);
  if (!to.ok) return viewError(400, to.reason);
  if (from.value.kind === "named") return viewError(400, unresolved(from.value));
  const [snapshot, routes] = [node.snapshot(), node.routes()];
  if (snapshot === null || routes === null)
    return viewError(503, "the cluster has not been read yet; try again in a moment");
  return explain(node, { from: from.value, to: to.value }, snapshot, routes, query.get("live") === "1");
}

async function explain(
  node: PageNode,
  { from, to }: { readonly from: Sender; readonly to: To },
  snapshot: Snapshot,
  whole: BothRoutes,
  live: boolean,
): Promise<ViewAnswer> {
  const routes = relevantRoutes(snapshot, whole, from, to);
  const question = questionOf(from, to, routes);
  if (!question.ok) {
    // With all Services, the reason can name a similar one.
    const again = questionOf(from, to, whole);
    return viewError(400, again.ok ? question.reason : again.reason);
  }
  const { family, packet } = question.value;
  const found: ExplainView = { mode: node.mode.name, ...trace(node.mode, routes[family], packet) };
  if (!live) return viewAnswer(200, found);
  if (node.kernel === null) return viewError(400, "there is no kernel to compare with: no daemon runs");
  try {
    return viewAnswer(200, { ...found, kernel: await node.kernel(routes[family], packet) });
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return viewError(503, `cannot read the kernel: ${error.message}`);
  }
}

/** Of the Services that this packet concerns: a Plan of all of them would take long to make. */
function relevantRoutes(snapshot: Snapshot, whole: BothRoutes, from: Sender, to: To): BothRoutes {
  const nodeIPs = families.map((family) => whole[family].settings.nodeIP);
  const part = snapshotOf([viewFor(snapshot, nodeIPs, from, to)]);
  return {
    ipv4: route(null, part.ipv4, whole.ipv4.settings),
    ipv6: route(null, part.ipv6, whole.ipv6.settings),
  };
}

function unresolved({ name }: Extract<From, { kind: "named" }>): string {
  return `cannot look up ${name} here; use the address of the pod, for example pod:10.0.1.5, or node, or outside`;
}
