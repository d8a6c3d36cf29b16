// Where the Operations of ipvs mode go: IPVS and the addresses of its link over netlink, IP sets through `ipset`.
import type { Address, Family } from "../../model/address.ts";
import type {
  HeldServer,
  IpvsState,
  Operation,
  ServerConnections,
  ServerId,
  ServerKey,
} from "../../plan/ipvs/types.ts";
import { type Start, starter } from "../iptables/command.ts";
import { type AddressListener, watchAddresses } from "../netlink/route.ts";
import type { Place } from "../netlink/socket.ts";
import { type Applied, type Numbered, nothingApplied, sumApplied } from "./applied.ts";
import { readConnections, readConnectionsOf } from "./connections.ts";
import { type Kernel, openKernel } from "./kernel.ts";
import { applyToLink, type LinkOperation, readLinkState } from "./link.ts";
import { changeTimeouts, readDestinations, readServers, type Timeouts } from "./read.ts";
import type { ServerOperation } from "./refusals.ts";
import { applyToServers } from "./servers.ts";
import { applyToSets, readSets, type SetOperation } from "./sets.ts";

export type IpvsHost = {
  readonly family: Family;
  /** The complete state of this family. */
  read(signal?: AbortSignal): Promise<IpvsState>;
  /** The real servers of these virtual servers with their connections; a virtual server that is gone is missing. */
  readDestinations(
    servers: readonly ServerId[],
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<ServerKey, HeldServer["destinations"]>>;
  /** What the virtual servers of this family have counted; with `destinations`, one more request for each of them. */
  readConnections(
    destinations: boolean,
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<ServerKey, ServerConnections>>;
  /** What one virtual server has counted; null: it is gone. */
  readConnectionsOf(server: ServerId, signal?: AbortSignal): Promise<number | null>;
  /**
   * Applies all Operations in order; adjacent ones of one kind are sent together, and entries through one `ipset`.
   * Throws HostError only when no request is possible, or when the result is unknown.
   */
  apply(operations: readonly Operation[], signal?: AbortSignal): Promise<Applied>;
  setTimeouts(timeouts: Timeouts, signal?: AbortSignal): Promise<void>;
  /** Reports addresses that any program removes from a link of this node, until the signal aborts. */
  watchAddresses(listener: LeavingAddresses, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
};

export type LeavingAddresses = {
  readonly left: (address: Address) => void;
  /** Some may have left unseen. */
  readonly lost: () => void;
};

export type IpvsHostOptions = Place & {
  readonly family: Family;
  /** How `ipset` is started; the default runs it on this machine. */
  readonly start?: Start;
};

/** Throws `unavailable` when this kernel has no IPVS; the query makes it load the module. */
export async function openIpvsHost({ family, netns, start }: IpvsHostOptions): Promise<IpvsHost> {
  const place = netns === undefined ? {} : { netns };
  const kernel = await openKernel(place);
  return hostOf(family, kernel, start ?? starter(place));
}

function hostOf(family: Family, kernel: Kernel, start: Start): IpvsHost {
  return {
    family,
    async read(signal) {
      const servers = await readServers(kernel, family, signal);
      const sets = await readSets(start, family, signal);
      return { family, servers, sets, ...(await readLinkState(kernel, family, signal)) };
    },
    async apply(operations, signal) {
      let total = nothingApplied;
      for (const run of runsOf(operations)) {
        signal?.throwIfAborted();
        total = sumApplied(total, await carryOut(run));
      }
      return total;
    },
    readDestinations: (servers, signal) => readDestinations(kernel, servers, signal),
    readConnections: (destinations, signal) => readConnections(kernel, family, destinations, signal),
    readConnectionsOf: (server, signal) => readConnectionsOf(kernel, server, signal),
    setTimeouts: (timeouts, signal) => changeTimeouts(kernel, timeouts, signal),
    watchAddresses: ({ left, lost }, signal) =>
      watchAddresses({ changed: reporter(left), lost }, signal, kernel.place),
    close: () => kernel.close(),
  };

  function reporter(left: LeavingAddresses["left"]): AddressListener["changed"] {
    return (change, found) => {
      if (change === "removed" && found.family === family) left(found.address);
    };
  }

  // No signal: a run must not be interrupted, and takes milliseconds.
  function carryOut(run: Run): Promise<Applied> {
    switch (run.channel) {
      case "servers":
        return applyToServers(kernel, run.operations);
      case "link":
        return applyToLink(kernel, run.operations);
      case "sets":
        return applyToSets(start, run.operations);
    }
  }
}

type Run =
  | { readonly channel: "servers"; readonly operations: Numbered<ServerOperation>[] }
  | { readonly channel: "link"; readonly operations: Numbered<LinkOperation>[] }
  | { readonly channel: "sets"; readonly operations: Numbered<SetOperation>[] };

const channels = {
  "add link": "link",
  "delete link": "link",
  "add address": "link",
  "delete address": "link",
  "add server": "servers",
  "set server": "servers",
  "delete server": "servers",
  "add destination": "servers",
  "set destination": "servers",
  "delete destination": "servers",
  "create set": "sets",
  "destroy set": "sets",
  "add entry": "sets",
  "delete entry": "sets",
} as const satisfies Record<Operation["kind"], Run["channel"]>;

/** Adjacent Operations of the same kind form one group. */
function runsOf(operations: readonly Operation[]): Run[] {
  const runs: Run[] = [];
  for (const [at, operation] of operations.entries()) {
    const channel = channels[operation.kind];
    if (runs.at(-1)?.channel !== channel) runs.push({ channel, operations: [] });
    (runs.at(-1)!.operations as Numbered<Operation>[]).push({ at, operation });
  }
  return runs;
}
