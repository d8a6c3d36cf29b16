// The view "Try a packet": the Trace that `turnout explain` prints, as a picture too, on request compared with the kernel.
import { trace } from "../../explain/trace.ts";
import { HostError } from "../../host/error.ts";
import { type ViewAnswer, viewAnswer, viewError } from "../../observe/status/page-views.ts";
import type { ExplainView } from "../json.ts";
import type { PageNode } from "../node.ts";
import { pictureOfPacket } from "./packet-picture.ts";
import { type Asked, packetOf } from "./question.ts";

export async function tryPacket(node: PageNode, query: URLSearchParams): Promise<ViewAnswer> {
  const asked = packetOf(node, query);
  if (!asked.ok) return asked.answer;
  const { family, packet, routes } = asked.value;
  const found = explained(node, asked.value);
  if (query.get("live") !== "1") return viewAnswer(200, found);
  if (node.kernel === null) return viewError(400, "there is no kernel to compare with: no daemon runs");
  try {
    return viewAnswer(200, { ...found, kernel: await node.kernel(routes[family], packet) });
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    return viewError(503, `cannot read the kernel: ${error.message}`);
  }
}

export function explained({ mode }: Pick<PageNode, "mode">, asked: Asked): ExplainView {
  const found = trace(mode, asked.routes[asked.family], asked.packet);
  return { mode: mode.name, ...found, picture: pictureOfPacket(mode, asked, found) };
}
