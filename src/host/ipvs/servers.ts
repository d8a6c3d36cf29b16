// Changes of virtual and real servers: Operations as messages, and what the kernel means by its errors.
import { type Command, type Contents, writeRequest } from "../netlink/ipvs.ts";
import { type Applied, type Numbered, sumApplied } from "./applied.ts";
import { destinationKeyOf, destinationOf, serviceKey, serviceOf } from "./codec.ts";
import { type Kernel, sendAll } from "./kernel.ts";
import { isGone, refusalText, type ServerOperation } from "./refusals.ts";

/** What exists when it is added is set; what is gone when it is deleted is no matter. */
export async function applyToServers(
  { ipvs, ipvsFamily }: Kernel,
  operations: readonly Numbered<ServerOperation>[],
): Promise<Applied> {
  const existing: Numbered<ServerOperation>[] = [];
  const send = (
    list: readonly Numbered<ServerOperation>[],
    explain: (numbered: Numbered<ServerOperation>, errno: string) => string | null,
  ) =>
    sendAll(
      ipvs,
      list,
      (out, sequence, operation) => {
        const [command, contents] = requestFor(operation);
        writeRequest(out, ipvsFamily, sequence, command, contents);
      },
      explain,
    );
  const first = await send(operations, ({ at, operation }, errno) => {
    const instead = errno === "EEXIST" ? settingOf(operation) : null;
    if (instead !== null) existing.push({ at, operation: instead });
    return instead !== null ? null : refusalText(operation, errno);
  });
  if (existing.length === 0) return first;
  // Gone by now: a later Operation of the list has deleted it.
  const second = await send(existing, ({ operation }, errno) =>
    isGone(operation, errno) ? null : refusalText(operation, errno),
  );
  return sumApplied(first, second);
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
