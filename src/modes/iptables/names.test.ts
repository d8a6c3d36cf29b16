// Chain names are kube-proxy's, so that affinity lists and chains outlive a change of program.
import { describe, expect, it } from "vitest";
import { endpoint, servicePort } from "../../../test/support/routed.ts";
import { chainNames, endpointChain } from "./names.ts";

describe("chain names", () => {
  it("10/1 are derived from the text that kube-proxy hashes", () => {
    const front = servicePort("shop/front");
    expect(chainNames(servicePort("default/kubernetes:https")).cluster).toBe("KUBE-SVC-NPX46M4PTMTKRN6Y");
    expect(chainNames(servicePort("kube-system/kube-dns:dns", { protocol: "udp" })).cluster).toBe(
      "KUBE-SVC-TCOU7JCQXEZGVUNU",
    );
    expect(chainNames(front)).toEqual({
      cluster: "KUBE-SVC-HMEZTNV3KF7ANPF4",
      local: "KUBE-SVL-HMEZTNV3KF7ANPF4",
      external: "KUBE-EXT-HMEZTNV3KF7ANPF4",
      firewall: "KUBE-FW-HMEZTNV3KF7ANPF4",
    });
    expect(endpointChain(front, endpoint("10.180.0.1:8443"))).toBe("KUBE-SEP-GTW5LZEWNUWYQQAZ");
    expect(endpointChain(front, endpoint("[fd00:10::1]:8443"))).toBe("KUBE-SEP-XPACR3AQQZ7NORME");
    expect(endpointChain(servicePort("ns1/svc1:p80"), endpoint("10.180.0.1:80"))).toBe(
      "KUBE-SEP-SXIVWICOYRO3J4NJ",
    );
  });

  it("10/3 differ between protocols of one port", () => {
    const tcp = chainNames(servicePort("kube-system/kube-dns:dns"));
    const udp = chainNames(servicePort("kube-system/kube-dns:dns", { protocol: "udp" }));
    expect(tcp.cluster).not.toBe(udp.cluster);
  });
});
