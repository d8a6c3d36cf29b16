// What userspace mode needs of a machine before it starts, and how every trace of it is removed.
import { HostError } from "../../../host/error.ts";
import { type Address, isLoopback } from "../../../model/address.ts";
import { type RemovalOptions, removeRules } from "../../iptables/host/setup.ts";
import type { Removed } from "../../removed.ts";
import { tracesOfUserspace } from "../foundation.ts";
import { removal } from "../removal.ts";

/** Redirected packets cannot reach relays on loopback. The message is that of kube-proxy v1.25. */
export function mustNotBindLoopback(bindAddress: Address): void {
  if (isLoopback(bindAddress)) throw new HostError("unavailable", "cannot proxy on localhost");
}

/** Takes out the six chains and their jumps in every family that has tables; safe to repeat. */
export function cleanUpUserspace({ netns }: { readonly netns?: string }): Promise<Removed> {
  return removeRules(netns === undefined ? {} : { netns }, removal);
}

/** The same at the start of another mode, which has tables of its own: those of a large cluster take seconds to read. */
export function releaseUserspace({
  netns,
  start,
}: Pick<RemovalOptions, "netns" | "start">): Promise<Removed> {
  const place = netns === undefined ? {} : { netns };
  return removeRules(
    { ...place, ...(start === undefined ? {} : { start }), onlyWith: tracesOfUserspace },
    removal,
  );
}
