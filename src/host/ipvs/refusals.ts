// Messages for the kernel's errors about virtual and real servers, since it sends only an errno.
import { destinationKey, serverKey } from "../../plan/ipvs/names.ts";
import type { Operation } from "../../plan/ipvs/types.ts";

export type ServerOperation = Extract<
  Operation,
  { readonly kind: `${string} server` | `${string} destination` }
>;

/** Bytes in the name of a scheduler. */
export const longestName = 15;

/** Empty when it is not known what is meant; null: it is no matter. */
export function refusalText(operation: ServerOperation, errno: string): string | null {
  switch (operation.kind) {
    case "delete server":
    case "delete destination":
      return isGone(operation, errno) ? null : "";
    case "add server":
    case "set server":
      return aboutServer(operation.server.scheduler)[errno] ?? "";
    case "add destination":
    case "set destination": {
      const meanings: Readonly<Record<string, string>> = {
        ESRCH: `there is no virtual server ${serverKey(operation.server)}`,
        ENOENT: `it has no real server ${destinationKey(operation.destination)}`,
        EINVAL: "its address is of another family, or no address of a host",
        ERANGE: "its weight is negative",
      };
      return meanings[errno] ?? "";
    }
  }
}

/** ENOENT about a virtual server is about its scheduler. */
export function isGone({ kind }: ServerOperation, errno: string): boolean {
  return errno === "ESRCH" || (errno === "ENOENT" && kind.endsWith("destination"));
}

function aboutServer(scheduler: string): Readonly<Record<string, string>> {
  const isTooLong = Buffer.byteLength(scheduler) > longestName;
  return {
    ENOENT: `this kernel has no scheduler ${scheduler}`,
    ESRCH: "there is no such virtual server",
    EINVAL: isTooLong
      ? `no scheduler has a name as long as ${scheduler}`
      : "the kernel does not take one of its values",
  };
}
