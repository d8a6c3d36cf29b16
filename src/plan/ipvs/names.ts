// The names of servers, destinations and entries as text.
import { joinHostPort } from "../../model/address.ts";
import type { DestinationId, DestinationKey, Entry, ServerId, ServerKey, SetName } from "./types.ts";

export function serverKey({ address, port, protocol }: ServerId): ServerKey {
  return `${joinHostPort(address, port)}/${protocol.toUpperCase()}`;
}

export function destinationKey({ address, port }: DestinationId): DestinationKey {
  return joinHostPort(address, port);
}

export function entryKey(set: SetName, entry: Entry): string {
  return `${set} ${entry}`;
}
