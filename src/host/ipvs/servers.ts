// Changes of virtual and real servers: Operations as messages, and what the kernel means by its errors.
import { destinationKey, serverKey } from "../../plan/ipvs/names.ts";
import type { Operation } from "../../plan/ipvs/types.ts";
import { type Command, type Contents, writeRequest } from "../netlink/ipvs.ts";
import { type Applied, type Numbered, together } from "./applied.ts";
import { destinationKeyOf, destinationOf, serviceKey, serviceOf } from "./codec.ts";
import { type Kernel, sendAll } from "./kernel.ts";

export type ServerOperation = Extract<
  Operation,
  { readonly kind: `${string} server` | `${string} destination` }
>;

/** What exists when it is added is set; what is gone when it is deleted is no matter. */
export async function applyToServers(
  { ipvs, ipvsFamily }: Kernel,
  operations: readonly Numbered<ServerOperation>[],
): Promise<Applied> {
  const existing: Numbered<ServerOperation>[] = [];
  const send = (
    list: readonly Numbered<ServerOperation>[],
    judge: (numbered: Numbered<ServerOperation>, errno: string) => string | null,
  ) =>
    sendAll(
      ipvs,
      list,
      (out, sequence, operation) => {
        const [command, contents] = requestFor(operation);
        writeRequest(out, ipvsFamily, sequence, command, contents);
      },
      judge,
    );
  const first = await send(operations, ({ at, operation }, errno) => {
    const instead = errno === "EEXIST" ? settingOf(operation) : null;
    if (instead !== null) existing.push({ at, operation: instead });
    return instead !== null ? null : objection(operation, errno);
  });
  if (existing.length === 0) return first;
  // Gone by now: a later Operation of the list has deleted it.
  const second = await send(existing, ({ operation }, errno) =>
    isGone(errno) ? null : objection(operation, errno),
  );
  return together(first, second);
}

function requestFor(operation: ServerOperation): [Command, Contents] {
  const service = serviceKey(operation.server);
  switch (operation.kind) {
    case "add server":
      return ["newService", { service: serviceOf(operation.server) }];
    case "set server":
      return ["setService", { service: serviceOf(operation.server) }];
    case "delete server":
      return ["delService", { service }];
    case "add destination":
      return ["newDestination", { service, destination: destinationOf(operation.destination) }];
    case "set destination":
      return ["setDestination", { service, destination: destinationOf(operation.destination) }];
    case "delete destination":
      return ["delDestination", { service, destination: destinationKeyOf(operation.destination) }];
  }
}

function settingOf(operation: ServerOperation): ServerOperation | null {
  if (operation.kind === "add server") return { ...operation, kind: "set server" };
  if (operation.kind === "add destination") return { ...operation, kind: "set destination" };
  return null;
}

function isGone(errno: string): boolean {
  return errno === "ESRCH" || errno === "ENOENT";
}

/** What the kernel means, since it does not say; null: it is no matter. */
function objection(operation: ServerOperation, errno: string): string | null {
  switch (operation.kind) {
    case "delete server":
    case "delete destination":
      return isGone(errno) ? null : "";
    case "add server":
    case "set server":
      return serverMeanings(operation.server.scheduler)[errno] ?? "";
    case "add destination":
    case "set destination": {
      const server = `there is no virtual server ${serverKey(operation.server)}`;
      const destination = `it has no real server ${destinationKey(operation.destination)}`;
      const meanings: Readonly<Record<string, string>> = {
        ESRCH: server,
        ENOENT: destination,
        EINVAL: "its address is of another family, or no address of a host",
        ERANGE: "its weight is negative",
      };
      return meanings[errno] ?? "";
    }
  }
}

const serverMeanings = (scheduler: string): Readonly<Record<string, string>> => ({
  ENOENT: `this kernel has no scheduler ${scheduler}`,
  ERANGE: `no scheduler has a name as long as ${scheduler}`,
  ESRCH: "there is no such virtual server",
  EINVAL: "the kernel does not take one of its values",
});
