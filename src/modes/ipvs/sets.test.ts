// The sets and what they hold are exactly those of kube-proxy v1.37.
import { describe, expect, it } from "vitest";
import { every, lines, planOf, sixth } from "../../../test/support/ipvs-plans.ts";
import { ipv4Settings, ipv6Settings, servicePort } from "../../../test/support/routed.ts";
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

  it("20/27 hold of one Service of every kind what kube-proxy's hold", () => {
    expect(lines(planOf(every), "add ")).toEqual([
      "add KUBE-CLUSTER-IP 172.30.0.10,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.11,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.12,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.13,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.14,tcp:80",
      "add KUBE-CLUSTER-IP 172.30.0.15,udp:53",
      "add KUBE-CLUSTER-IP 172.30.0.16,udp:514",
      "add KUBE-CLUSTER-IP 172.30.0.17,sctp:99",
      "add KUBE-CLUSTER-IP 172.30.0.18,sctp:99",
      "add KUBE-EXTERNAL-IP 192.168.99.5,tcp:80",
      "add KUBE-EXTERNAL-IP-LOCAL 192.168.99.6,tcp:80",
      "add KUBE-HEALTH-CHECK-NODE-PORT 31000",
      ...[10, 11, 12, 13, 14, 15, 16, 17, 18].map((last) => `add KUBE-IPVS-IPS 172.30.0.${last}`),
      "add KUBE-IPVS-IPS 192.168.99.5",
      "add KUBE-IPVS-IPS 192.168.99.6",
      "add KUBE-IPVS-IPS 198.51.100.7",
      "add KUBE-IPVS-IPS 198.51.100.8",
      "add KUBE-LOAD-BALANCER 198.51.100.7,tcp:80",
      "add KUBE-LOAD-BALANCER 198.51.100.8,tcp:80",
      "add KUBE-LOAD-BALANCER-FW 198.51.100.7,tcp:80",
      "add KUBE-LOAD-BALANCER-FW 198.51.100.8,tcp:80",
      "add KUBE-LOAD-BALANCER-LOCAL 198.51.100.8,tcp:80",
      "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.7,tcp:80,203.0.113.0/24",
      "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.7,tcp:80,203.0.114.9",
      "add KUBE-LOAD-BALANCER-SOURCE-CIDR 198.51.100.8,tcp:80,192.168.0.0/16",
      "add KUBE-LOAD-BALANCER-SOURCE-IP 198.51.100.8,tcp:80,198.51.100.8",
      "add KUBE-LOOP-BACK 10.180.0.1,tcp:8080,10.180.0.1",
      "add KUBE-LOOP-BACK 10.180.0.2,udp:514,10.180.0.2",
      "add KUBE-NODE-PORT-LOCAL-SCTP-HASH 192.168.0.2,sctp:30098",
      "add KUBE-NODE-PORT-LOCAL-TCP 30081",
      "add KUBE-NODE-PORT-LOCAL-UDP 30514",
      "add KUBE-NODE-PORT-SCTP-HASH 192.168.0.2,sctp:30098",
      "add KUBE-NODE-PORT-SCTP-HASH 192.168.0.2,sctp:30099",
      "add KUBE-NODE-PORT-TCP 30080",
      "add KUBE-NODE-PORT-TCP 30081",
      "add KUBE-NODE-PORT-UDP 30053",
      "add KUBE-NODE-PORT-UDP 30514",
    ]);
  });

  it("20/27 hold the same in IPv6, under cut names", () => {
    const four = lines(planOf(every), "add ").map((line) => line.split(" ")[1]!);
    const six = lines(planOf(every.map(sixth), ipv6Settings), "add ").map((line) => line.split(" ")[1]!);
    const renamed = four.map((name) => name.replace("KUBE-", "KUBE-6-").slice(0, 31));
    // The node is inside no range there, so the entry that lets it in is missing.
    expect(six).toEqual(renamed.filter((name) => name !== "KUBE-6-LOAD-BALANCER-SOURCE-IP"));
    expect(lines(planOf(every.map(sixth), ipv6Settings), "add KUBE-6-LOAD-BALANCER-SOURCE-CID")).toEqual([
      "add KUBE-6-LOAD-BALANCER-SOURCE-CID fd00:198:51:100::7,tcp:80,fd00:203:0:113::/64",
      "add KUBE-6-LOAD-BALANCER-SOURCE-CID fd00:198:51:100::7,tcp:80,fd00:203:0:114::9",
      "add KUBE-6-LOAD-BALANCER-SOURCE-CID fd00:198:51:100::8,tcp:80,fd00:192:168::/64",
    ]);
  });

  it("20/29 know no ranges where there are none for the family", () => {
    const open = servicePort("shop/web", { loadBalancerIPs: ["198.51.100.7"], sourceRanges: [] });
    const plan = planOf([open]);
    expect(lines(plan, "add KUBE-LOAD-BALANCER")).toEqual(["add KUBE-LOAD-BALANCER 198.51.100.7,tcp:80"]);
    expect(lines(plan, "-A KUBE-IPVS-OUT-FILTER")).toEqual([]);
  });

  it("20/39 list every node address for an SCTP NodePort", () => {
    const port = servicePort("shop/signal", { protocol: "sctp", nodePort: 30099 });
    const settings = { ...ipv4Settings, localAddresses: ["10.9.0.1", "127.0.0.1", "192.168.0.2"] };
    expect(lines(planOf([port], settings), "add KUBE-NODE-PORT-SCTP-HASH")).toEqual([
      "add KUBE-NODE-PORT-SCTP-HASH 10.9.0.1,sctp:30099",
      "add KUBE-NODE-PORT-SCTP-HASH 192.168.0.2,sctp:30099",
    ]);
  });

  it("20/40 hold the health-check port even where NodePorts answer nowhere", () => {
    const port = servicePort("shop/web", {
      externalPolicy: "local",
      nodePort: 30080,
      healthCheckNodePort: 31000,
    });
    const nowhere = { ...ipv4Settings, nodePortAddresses: { kind: "some", cidrs: ["127.0.0.0/8"] } } as const;
    expect(lines(planOf([port], nowhere), "add KUBE-HEALTH")).toEqual([
      "add KUBE-HEALTH-CHECK-NODE-PORT 31000",
    ]);
    expect(lines(planOf([port], nowhere), "add KUBE-NODE-PORT")).toEqual([]);
  });
});
