// Graceful termination: a real server that is no longer wanted keeps its connections, and is deleted when it has none.
import { destinationKey, serverKey } from "./names.ts";
import type { DestinationId, DestinationKey, HeldServer, ServerId, ServerKey } from "./types.ts";

/** Real servers on their way out, by `drainKey`. */
export type Draining = ReadonlyMap<string, Drain>;

export type Drain = { readonly server: ServerId; readonly destination: DestinationId };

export function drainKey(server: ServerId, destination: DestinationId): string {
  return `${serverKey(server)}/${destinationKey(destination)}`;
}

/** UDP has no end of a connection to wait for: such a server is deleted immediately, and its clients move to another. */
export function isDrained({ protocol }: ServerId): boolean {
  return protocol === "tcp";
}

/**
 * From the kernel's connection counts: a server without connections is drained, and one that another program deleted,
 * or whose virtual server is gone, is dropped.
 */
export function settle(
  draining: Draining,
  seen: ReadonlyMap<ServerKey, HeldServer["destinations"]>,
): { readonly draining: Draining; readonly ended: Draining } {
  const rest = new Map<string, Drain>();
  const ended = new Map<string, Drain>();
  for (const [key, drain] of draining) {
    const { server, destination } = drain;
    const held = seen.get(serverKey(server))?.get(destinationKey(destination) satisfies DestinationKey);
    if (held === undefined) continue;
    if (held.active + held.inactive > 0) rest.set(key, drain);
    else ended.set(key, drain);
  }
  return { draining: rest, ended };
}
