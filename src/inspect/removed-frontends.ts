// Reads from a daemon which addresses and ports Services no longer have, by its history.
import type { RemovedFrontend } from "../history/removed.ts";
import type { Family } from "../model/address.ts";
import { streamFromDaemon } from "../observe/status/client.ts";
import type { FrontendId } from "../routing/routes.ts";
import type { Target } from "./target.ts";

export type Removed = Readonly<Record<Family, ReadonlyMap<FrontendId, RemovedFrontend>>>;

export const nothingRemoved: Removed = { ipv4: new Map(), ipv6: new Map() };

/** Nothing where there is no daemon, where it keeps no history, or where it is of an earlier version. */
export async function loadRemoved({ fromDaemon, socket }: Target): Promise<Removed> {
  if (!fromDaemon) return nothingRemoved;
  const removed = { ...nothingRemoved };
  try {
    for await (const line of streamFromDaemon(socket, "/history", { removed: "true", limit: "0" }))
      if (line.kind === "removed") removed[line.family] = new Map(Object.entries(line.frontends));
  } catch {
    // The daemon has ended meanwhile: flows are listed without it.
    return nothingRemoved;
  }
  return removed;
}
