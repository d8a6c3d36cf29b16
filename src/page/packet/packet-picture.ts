// The way of one packet as data for a picture: its sender, the Frontend that it hits, and the Endpoints of that ServicePort.
import type { Trace } from "../../explain/trace.ts";
import { type Endpoint, endpointKey } from "../../model/snapshot.ts";
import type { Mode } from "../../modes/mode.ts";
import type { PortJson } from "../json.ts";
import { pathOf, pictureWithoutPaths } from "../picture.ts";
import { placeOf } from "../row.ts";
import type { Asked } from "./question.ts";

/** null: the packet hits no Service. `missing`: Endpoints that the Trace was made without, and why. */
export function pictureOfPacket(
  mode: Mode,
  { routes, family, packet, from, to }: Asked,
  found: Trace,
  missing: Missing | null = null,
): PortJson | null {
  const { hit } = mode.decide(routes[family], packet);
  if (hit === null) return null;
  const routed = routes[family].ports.get(hit.key)!;
  const { frontend, allowed } = hit.route;
  const whole = pictureWithoutPaths(routes, routed);
  const indexes = new Map(whole.endpoints.map(({ endpoint }, i) => [endpoint, i]));
  const gone = routed.port.endpoints
    .filter((each) => missing?.has(each) === true)
    .map((each) => ({ endpoint: endpointKey(each), reason: missing!.reason }));
  return {
    ...whole,
    lost: [],
    moreFrontends: 0,
    frontends: [{ kind: frontend.kind, place: placeOf(frontend), allowed }],
    paths: [
      {
        frontend: 0,
        sender: found.sender,
        from,
        to,
        ...pathOf({ ...found, leftOut: [...gone, ...found.leftOut] }, indexes),
      },
    ],
  };
}

export type Missing = { readonly has: (endpoint: Endpoint) => boolean; readonly reason: string };
