// The sets are exactly those of kube-proxy.
import { describe, expect, it } from "vitest";
import { setComment, setsOf } from "./sets.ts";

describe("sets of ipvs mode", () => {
  it("20/26 have the names and types of kube-proxy's, two of them cut in IPv6", () => {
    const listed = setsOf("ipv4").map(({ name, type }) => `${name} ${type}`);
    expect(listed.sort()).toEqual([
      "KUBE-CLUSTER-IP hash:ip,port",
      "KUBE-EXTERNAL-IP hash:ip,port",
      "KUBE-EXTERNAL-IP-LOCAL hash:ip,port",
      "KUBE-HEALTH-CHECK-NODE-PORT bitmap:port",
      "KUBE-IPVS-IPS hash:ip",
      "KUBE-LOAD-BALANCER hash:ip,port",
      "KUBE-LOAD-BALANCER-FW hash:ip,port",
      "KUBE-LOAD-BALANCER-LOCAL hash:ip,port",
      "KUBE-LOAD-BALANCER-SOURCE-CIDR hash:ip,port,net",
      "KUBE-LOAD-BALANCER-SOURCE-IP hash:ip,port,ip",
      "KUBE-LOOP-BACK hash:ip,port,ip",
      "KUBE-NODE-PORT-LOCAL-SCTP-HASH hash:ip,port",
      "KUBE-NODE-PORT-LOCAL-TCP bitmap:port",
      "KUBE-NODE-PORT-LOCAL-UDP bitmap:port",
      "KUBE-NODE-PORT-SCTP-HASH hash:ip,port",
      "KUBE-NODE-PORT-TCP bitmap:port",
      "KUBE-NODE-PORT-UDP bitmap:port",
    ]);
    const six = setsOf("ipv6");
    expect(six).toHaveLength(17);
    expect(six.every(({ name }) => name.startsWith("KUBE-6-") && name.length <= 31)).toBe(true);
    expect(six.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["KUBE-6-LOAD-BALANCER-SOURCE-CID", "KUBE-6-NODE-PORT-LOCAL-SCTP-HAS"]),
    );
    expect(setComment("ipvsIPs")).toBe("Addresses on the ipvs interface");
  });
});
