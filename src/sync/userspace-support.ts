// What userspace mode needs of a machine before it starts, and how every trace of it is removed.
import { HostError } from "../host/error.ts";
import { inUseHere } from "../host/iptables/back-end.ts";
import { type Start, starter } from "../host/iptables/command.ts";
import { openIptablesHost } from "../host/iptables/host.ts";
import { type Address, type Family, families, familyOf, isLoopback } from "../model/address.ts";
import { removal } from "../modes/userspace/removal.ts";

/** Relays on loopback could not be reached through redirected packets. In the words of kube-proxy v1.25. */
export function mustNotBindLoopback(bindAddress: Address): void {
  if (isLoopback(bindAddress)) throw new HostError("unavailable", "cannot proxy on localhost");
}

/** The address that relays of a family listen on; null: every address. */
export function bindAddressOf(family: Family, bindAddress: Address): Address | null {
  const isZero = bindAddress === "0.0.0.0" || bindAddress === "::";
  return isZero || familyOf(bindAddress) !== family ? null : bindAddress;
}

/** Takes out the six chains and their jumps in every family that has tables; safe to repeat. */
export async function cleanUpUserspace(place: { readonly netns?: string }): Promise<void> {
  const start = await inUseHere(starter(place));
  for (const family of families) await cleanUpFamily(family, start);
}

async function cleanUpFamily(family: Family, start: Start): Promise<void> {
  const host = await openIptablesHost(family, start).catch((error: unknown) => {
    // Without the program there was never a rule of it.
    if (error instanceof HostError && error.kind === "unavailable") return null;
    throw error;
  });
  if (host !== null) await host.apply(removal(await host.read()));
}
