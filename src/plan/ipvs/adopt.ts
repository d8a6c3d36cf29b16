// From the current state of a host to a Plan: correct objects stay untouched, no matter which program made them.
import type { PortKey } from "../../model/snapshot.ts";
import { type Change, Draft } from "./diff.ts";
import { entryKey, serverKey } from "./names.ts";
import type { Claim, HeldServer, HeldSet, IpSet, IpvsPlan, IpvsState, SetName } from "./types.ts";

/**
 * What is missing, different, or left over. Other programs' virtual servers are left over too, unless their network is
 * excluded, as in kube-proxy. Real servers that were draining, or should, continue to drain.
 */
export function adopt(have: IpvsState, want: IpvsPlan): Change {
  const draft = new Draft(want, new Map());
  if (have.link === "absent") draft.foundation({ kind: "add link", owner: null });
  const owners = ownersOf(want);
  for (const set of want.sets) adoptSet(have.sets.get(set.name), set, want, owners, draft);
  for (const claims of want.servers.values())
    adoptServer(have.servers.get(serverKey(claims[0]!.server)), claims[0]!, draft);
  for (const [key, server] of have.servers) if (!want.servers.has(key)) draft.deleteServer(server, null);
  for (const address of want.addresses.keys()) {
    if (!have.addresses.has(address)) draft.address(address, true, owners.addresses.get(address) ?? null);
  }
  for (const address of have.addresses) if (!want.addresses.has(address)) draft.address(address, false, null);
  return draft.done();
}

type Owners = {
  readonly addresses: ReadonlyMap<string, PortKey>;
  readonly entries: ReadonlyMap<SetName, ReadonlyMap<string, PortKey>>;
};

/** A ServicePort that needs each address and entry; of several, one. */
function ownersOf({ fragments, sets }: IpvsPlan): Owners {
  const addresses = new Map<string, PortKey>();
  const entries = new Map<SetName, Map<string, PortKey>>(sets.map(({ name }) => [name, new Map()]));
  for (const fragment of fragments.values()) {
    for (const address of fragment.addresses) addresses.set(address, fragment.key);
    for (const { set, entry } of fragment.entries) entries.get(set)!.set(entry, fragment.key);
  }
  return { addresses, entries };
}

function adoptSet(held: HeldSet | undefined, set: IpSet, want: IpvsPlan, owners: Owners, draft: Draft): void {
  const isRight = held !== undefined && fits(held, set);
  if (!isRight) {
    // One of another kind under this name: where no rule holds on to it, it makes room.
    if (held !== undefined) draft.foundation({ kind: "destroy set", set: set.name, owner: null });
    draft.foundation({ kind: "create set", set, owner: null });
  }
  const entries = isRight ? held.entries : new Set<string>();
  for (const [entry, owner] of owners.entries.get(set.name)!) {
    if (!entries.has(entry)) draft.entry(set.name, entry, true, owner);
  }
  for (const entry of entries) {
    if (!want.entries.has(entryKey(set.name, entry))) draft.entry(set.name, entry, false, null);
  }
}

const hashRoom = 65_536;

function fits(held: HeldSet, { type, family }: IpSet): boolean {
  if (held.type !== type) return false;
  return type === "bitmap:port" || (held.family === family && held.maxElements === hashRoom);
}

function adoptServer(held: HeldServer | undefined, claim: Claim, draft: Draft): void {
  if (held === undefined) {
    draft.addServer(claim);
    return;
  }
  draft.setServer(held, claim);
  const { server, owner } = claim;
  for (const [key, destination] of server.destinations) {
    const known = held.destinations.get(key);
    if (known === undefined) draft.join("add destination", server, destination, owner);
    else if (known.weight !== 1) draft.join("set destination", server, destination, owner);
  }
  for (const [key, destination] of held.destinations) {
    if (!server.destinations.has(key)) draft.leave(server, destination, owner, destination.weight);
  }
}
