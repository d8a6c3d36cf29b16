// What walks through iptables and nftables rules share: their outcomes, and what the kernel has besides the rules.
import type { Address } from "../model/address.ts";

export type WalkOutcome =
  | {
      readonly kind: "forward";
      readonly backend: { readonly address: Address; readonly port: number };
      readonly masquerade: boolean;
    }
  | { readonly kind: "reject" }
  | { readonly kind: "drop" }
  | { readonly kind: "pass" };

export type Surroundings = {
  readonly localAddresses: readonly Address[];
  /** The interface through which packets of pods arrive. */
  readonly podInterface: string;
  /** Clients remembered for affinity: name of the list or set → addresses. */
  readonly remembered?: ReadonlyMap<string, ReadonlySet<Address>>;
};
