// The public names of the IP families: in labels, JSON keys and events.
import type { Family } from "../model/address.ts";

export const familyLabels = { ipv4: "IPv4", ipv6: "IPv6" } as const satisfies Record<Family, string>;
