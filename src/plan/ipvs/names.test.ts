// Names of servers and destinations are those that kube-proxy and ipvsadm use.
import { describe, expect, it } from "vitest";
import { destinationKey, entryKey, serverKey } from "./names.ts";
import { linkName, serverFlag } from "./types.ts";

describe("names", () => {
  it("identify servers and destinations, in both families", () => {
    expect(serverKey({ address: "172.30.0.1", port: 443, protocol: "tcp" })).toBe("172.30.0.1:443/TCP");
    expect(serverKey({ address: "fd00::1", port: 80, protocol: "udp" })).toBe("[fd00::1]:80/UDP");
    expect(destinationKey({ address: "10.0.1.1", port: 8080 })).toBe("10.0.1.1:8080");
    expect(entryKey("KUBE-IPVS-IPS", "172.30.0.1")).toBe("KUBE-IPVS-IPS 172.30.0.1");
    expect([linkName, serverFlag.persistent, serverFlag.hashSourcePort]).toEqual(["kube-ipvs0", 1, 16]);
  });
});
