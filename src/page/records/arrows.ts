// The rules and elements of the kernel beside each arrow of a picture: on the way to a Service, and from there to each endpoint.
import { HostError } from "../../host/error.ts";
import { joinHostPort } from "../../model/address.ts";
import type { Walk } from "../../modes/mode.ts";
import { type ViewAnswer, viewAnswer, viewError } from "../../observe/status/page-views.ts";
import type { Packet } from "../../routing/decide.ts";
import type { Routes } from "../../routing/routes.ts";
import type { ArrowsView } from "../json.ts";
import type { PageNode } from "../node.ts";
import { packetOf } from "../packet/question.ts";

/** Every path that a new packet can take through what the kernel holds. Throws HostError. */
export type KernelWalks = (routes: Routes, packet: Packet) => Promise<readonly Walk[]>;

/** More arrows are not drawn. */
const mostEndpoints = 50;

export async function arrowsView(
  node: Pick<PageNode, "snapshot" | "routes">,
  walks: KernelWalks | null,
  query: URLSearchParams,
): Promise<ViewAnswer> {
  if (walks === null) return viewError(400, "there is no kernel to read: no daemon runs");
  const asked = packetOf(node, query);
  if (!asked.ok) return asked.answer;
  const { routes, family, packet } = asked.value;
  try {
    return viewAnswer(200, arrowsOf(await walks(routes[family], packet)));
  } catch (error) {
    if ((error as Error).name === "TimeoutError") return viewError(503, "the kernel did not answer in time");
    if (!(error instanceof HostError)) throw error;
    return viewError(503, `cannot read the kernel: ${error.message}`);
  }
}

/** What all paths begin with is on the way to the Service; what follows is on the way to an endpoint. */
export function arrowsOf(walks: readonly Walk[]): ArrowsView {
  const [first] = walks;
  if (first === undefined) return { service: [], endpoints: [], more: 0 };
  const forwards = walks.filter(({ outcome }) => outcome.kind === "forward");
  if (forwards.length === 0) return { service: first.steps, endpoints: [], more: 0 };
  const most = Math.min(...forwards.map(endpointStep));
  let shared = 0;
  while (shared < most && walks.every(({ steps }) => steps[shared] === first.steps[shared])) shared++;
  const endpoints = forwards.slice(0, mostEndpoints).map(({ outcome, steps }) => ({
    endpoint: placeOf(outcome),
    steps: steps.slice(shared),
  }));
  return { service: first.steps.slice(0, shared), endpoints, more: forwards.length - endpoints.length };
}

/** The first step that names the endpoint: of the only endpoint, all steps are shared otherwise. */
function endpointStep({ outcome, steps }: Walk): number {
  const address = outcome.kind === "forward" ? outcome.backend.address : "";
  const isNamed = (step: string) => step.split(/[^\da-f.:]+/).some((word) => isPlace(word, address));
  const index = steps.findIndex(isNamed);
  return index < 0 ? steps.length : index;
}

/** `10.0.1.5`, `10.0.1.5:8080` */
function isPlace(word: string, address: string): boolean {
  return word === address || word.startsWith(`${address}:`);
}

function placeOf(outcome: Walk["outcome"]): string {
  return outcome.kind === "forward" ? joinHostPort(outcome.backend.address, outcome.backend.port) : "";
}
