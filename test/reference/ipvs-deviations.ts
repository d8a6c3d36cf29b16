// Where ours deliberately leaves something else in a kernel than the real kube-proxy in ipvs mode, and why.
import { familyOf } from "../../src/model/address.ts";
import type { Difference } from "./differences.ts";
import type { IpvsCase } from "./ipvs-cases.ts";

export type Deviation = {
  readonly reason: string;
  readonly covers: (difference: Difference, state: IpvsCase) => boolean;
};

export const deviations: readonly Deviation[] = [
  {
    reason: "health check node ports are let in also where no NodePort answers",
    covers: ({ who, listing, line }, state) => {
      const set = /^add KUBE-(6-)?HEALTH-CHECK-NODE-PORT /.exec(line);
      if (who !== "turnout" || listing !== "ipset save" || set === null) return false;
      return answersOnLoopbackAlone(state, set[1] === undefined ? "ipv4" : "ipv6");
    },
  },
];

/** Those that no deviation explains. */
export function unexplained(found: readonly Difference[], state: IpvsCase): Difference[] {
  return found.filter((each) => !deviations.some(({ covers }) => covers(each, state)));
}

/** This mode serves no NodePort there. */
function answersOnLoopbackAlone({ configuration }: IpvsCase, family: "ipv4" | "ipv6"): boolean {
  const cidrs = (configuration.nodePortAddresses as readonly string[]).filter(
    (cidr) => cidr !== "primary" && familyOf(cidr) === family,
  );
  return cidrs.length > 0 && cidrs.every((cidr) => cidr.startsWith("127.") || cidr === "::1/128");
}
