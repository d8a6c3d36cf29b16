// The packet that a request asks about, with the part of the cluster that it concerns.
import { type From, parseFrom, parseTo, type To } from "../../explain/question.ts";
import { type BothRoutes, type Question, questionOf, type Sender } from "../../explain/resolve.ts";
import { snapshotOf, viewFor } from "../../explain/view.ts";
import { families } from "../../model/address.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type ViewAnswer, viewError } from "../../observe/status/page-views.ts";
import { route } from "../../routing/routes.ts";
import type { PageNode } from "../node.ts";

export type Asked = Question & {
  /** As the request has them. */
  readonly from: string;
  readonly to: string;
  /** Of the Services that this packet concerns: a Plan of all of them would take long to make. */
  readonly part: Snapshot;
  readonly routes: BothRoutes;
};

type Found =
  | { readonly ok: true; readonly value: Asked }
  | { readonly ok: false; readonly answer: ViewAnswer };

export function packetOf(node: Pick<PageNode, "snapshot" | "routes">, query: URLSearchParams): Found {
  const texts = { from: query.get("from") ?? "", to: query.get("to") ?? "" };
  const [from, to] = [parseFrom(texts.from), parseTo(texts.to)];
  if (!from.ok) return refused(400, from.reason);
  if (!to.ok) return refused(400, to.reason);
  if (from.value.kind === "named") return refused(400, unresolved(from.value));
  const [snapshot, whole] = [node.snapshot(), node.routes()];
  if (snapshot === null || whole === null) return refused(503, notReadYet);
  const part = relevantPart(snapshot, whole, from.value, to.value);
  const routes = routesOf(part, whole);
  const question = questionOf(from.value, to.value, routes);
  if (question.ok) return { ok: true, value: { ...texts, ...question.value, part, routes } };
  // With all Services, the reason can name a similar one.
  const again = questionOf(from.value, to.value, whole);
  return refused(400, again.ok ? question.reason : again.reason);
}

export const notReadYet = "the cluster has not been read yet; try again in a moment";

/** With the settings of the Routes of the node. */
export function routesOf(part: Snapshot, whole: BothRoutes): BothRoutes {
  return {
    ipv4: route(null, part.ipv4, whole.ipv4.settings),
    ipv6: route(null, part.ipv6, whole.ipv6.settings),
  };
}

function relevantPart(snapshot: Snapshot, whole: BothRoutes, from: Sender, to: To): Snapshot {
  const nodeIPs = families.map((family) => whole[family].settings.nodeIP);
  return snapshotOf([viewFor(snapshot, nodeIPs, from, to)]);
}

function refused(status: 400 | 503, reason: string): Found {
  return { ok: false, answer: viewError(status, reason) };
}

function unresolved({ name }: Extract<From, { kind: "named" }>): string {
  return `cannot look up ${name} here; use the address of the pod, for example pod:10.0.1.5, or node, or outside`;
}
