// Cluster states for ipvs mode: those of iptables mode with settings of IPVS, on a node where other programs use IPVS as well.
import { families } from "../../src/model/address.ts";
import { inFamily, loadBalancerAddressesOnNode, outsideNetwork, secondNodeAddress, twin } from "../places.ts";
import { type Case, generateCase } from "./cases.ts";
import type { Configuration } from "./proxy.ts";
import { type Random, seeded } from "./random.ts";

export type IpvsCase = Omit<Case, "configuration"> & { readonly configuration: Configuration<"ipvs"> };

export function generateIpvsCase(seed: number): IpvsCase {
  const { configuration, objects } = generateCase(seed, "iptables");
  const ipvs = ownSettings(seeded(seed ^ 0x1b5));
  return { seed, configuration: { ...configuration, mode: "ipvs", ipvs }, objects };
}

/** Addresses of the node besides its first: Services may name them too, and then they are not put on another link. */
export const furtherNodeAddresses: readonly string[] = families.flatMap((family) =>
  [secondNodeAddress, ...loadBalancerAddressesOnNode].map((address) => inFamily(address, family)),
);

/** Virtual servers of other programs; the first in each family may be excluded. */
export const foreignServers: readonly string[] = [
  "-A -t 203.0.113.77:80 -s wlc",
  `-A -t [${twin("203.0.113.77")}]:80 -s wlc`,
  "-A -u 192.0.2.77:53 -s wlc",
  "-A -f 7 -s wlc",
];

function ownSettings(random: Random): object {
  const scheduler = random.one(["", "rr", "wrr", "lc", "wlc", "sh", "mh", "dh", "sed", "nq", "lblc"]);
  const excludeCIDRs = random.one([
    [],
    [outsideNetwork],
    [twin(outsideNetwork)],
    [outsideNetwork, twin(outsideNetwork)],
  ]);
  const timeouts = random.chance(0.2) ? { tcpTimeout: "100s", udpTimeout: "7s" } : {};
  return { scheduler, excludeCIDRs, strictARP: random.chance(0.2), ...timeouts };
}
