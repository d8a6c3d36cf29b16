// Clean-up takes what kube-proxy wrote in earlier releases too, and nothing of others.
import { describe, expect, it } from "vitest";
import { applyInMemory, freshTables } from "../../host/iptables/memory.ts";
import { parseSave } from "../../plan/iptables/parse.ts";
import type { HostTables } from "../../plan/iptables/types.ts";
import { removal } from "./removal.ts";

/** What kube-proxy v1.22 leaves for a Service with `externalTrafficPolicy: Local`, and a jump of v1.9. */
const ofEarlierReleases = `*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FORWARD - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-SERVICES - [0:0]
-A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
-A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-FW-HMEZTNV3KF7ANPF4 - [0:0]
:KUBE-MARK-DROP - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-PROXY-CANARY - [0:0]
:KUBE-SEP-GTW5LZEWNUWYQQAZ - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-HMEZTNV3KF7ANPF4 - [0:0]
:KUBE-XLB-HMEZTNV3KF7ANPF4 - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A KUBE-FW-HMEZTNV3KF7ANPF4 -m comment --comment "shop/front loadbalancer IP" -j KUBE-XLB-HMEZTNV3KF7ANPF4
-A KUBE-FW-HMEZTNV3KF7ANPF4 -m comment --comment "shop/front loadbalancer IP" -j KUBE-MARK-DROP
-A KUBE-NODEPORTS -p tcp -m comment --comment "shop/front" -m tcp --dport 30443 -j KUBE-XLB-HMEZTNV3KF7ANPF4
-A KUBE-SVC-HMEZTNV3KF7ANPF4 -m comment --comment "shop/front" -j KUBE-SEP-GTW5LZEWNUWYQQAZ
-A KUBE-XLB-HMEZTNV3KF7ANPF4 -m comment --comment "Balancing rule 0 for shop/front" -j KUBE-SEP-GTW5LZEWNUWYQQAZ
COMMIT
*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-PROXY-CANARY - [0:0]
COMMIT
`;

describe("clean-up after an earlier release", () => {
  const held = parseSave(ofEarlierReleases, "ipv4");

  it("behaviour/5: takes out KUBE-XLB- chains and jumps of old; the kubelet's chain stays", () => {
    const cleaned = applyInMemory(held, removal(held));
    expect(cleaned).toEqual(withKubelet(freshTables("ipv4")));
    expect(removal(cleaned).steps).toEqual([]);
  });
});

function withKubelet(tables: HostTables): HostTables {
  const nat = new Map(tables.tables.get("nat")).set("KUBE-MARK-DROP", []);
  return { ...tables, tables: new Map(tables.tables).set("nat", nat) };
}
