// Generic netlink: finds the number the kernel gave to a family such as IPVS, and frames its messages.
import { HostError } from "../error.ts";
import { attributes, defaulted, field, list, text, u16, u32, writeAttribute } from "./attributes.ts";
import { beginMessage, endMessage, flag } from "./message.ts";
import { type NetlinkSocket, sendRequest } from "./socket.ts";
import { Writer } from "./writer.ts";

export type GenericFamily = {
  readonly name: string;
  /** The message type of its requests. */
  readonly id: number;
  readonly version: number;
  /** Multicast groups by name. */
  readonly groups: ReadonlyMap<string, number>;
};

export const genericHeaderLength = 4;

const controller = 0x10;
const GET_FAMILY = 3;
const familyFields = attributes({
  id: field(1, u16),
  name: field(2, text),
  version: defaulted(3, u32, 1),
  groups: defaulted(7, list(1, attributes({ name: field(1, text), id: field(2, u32) })), []),
});

/** Throws `unavailable` when the kernel does not have it; the query makes the kernel load its module. */
export async function resolveFamily(
  socket: NetlinkSocket,
  name: string,
  signal?: AbortSignal,
): Promise<GenericFamily> {
  const out = new Writer(64);
  const at = beginGeneric(out, controller, flag.request | flag.acknowledge, 1, GET_FAMILY, 2);
  writeAttribute(out, 2, text, name);
  endMessage(out, at);
  let family: GenericFamily | undefined;
  const what = `find generic netlink family ${name}`;
  try {
    await sendRequest(socket, what, out.bytes(), signal, (from, { start, end }) => {
      const found = familyFields.read(from, start + genericHeaderLength, end);
      if (found !== undefined)
        family = { ...found, groups: new Map(found.groups.map((g) => [g.name, g.id])) };
    });
  } catch (error) {
    if (!(error instanceof HostError) || error.errno !== "ENOENT") throw error;
    throw new HostError("unavailable", `Cannot ${what}: this kernel does not have it`, {
      cause: error,
      errno: "ENOENT",
    });
  }
  if (family === undefined) throw new HostError("lost", `Cannot ${what}: the kernel did not answer`);
  return family;
}

/** Opens a message of a generic family; close it with `endMessage`. */
export function beginGeneric(
  out: Writer,
  family: number,
  flags: number,
  sequence: number,
  command: number,
  version: number,
): number {
  const at = beginMessage(out, family, flags, sequence);
  out.u8(command);
  out.u8(version);
  out.u16(0);
  return at;
}
