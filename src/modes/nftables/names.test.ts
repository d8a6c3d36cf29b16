// Names of kernel objects: kube-proxy's, letter by letter, so that either program recognises the other's.
import { describe, expect, it } from "vitest";
import { servicePort } from "../../../test/support/routed.ts";
import { endpointName, serviceName, shortComment } from "./names.ts";

describe("names", () => {
  it("11/8 are those of kube-proxy", () => {
    expect(serviceName("service", servicePort("default/kubernetes:https"))).toBe(
      "service-2QRHZV4L-default/kubernetes/tcp/https",
    );
    expect(serviceName("service", servicePort("kube-system/kube-dns:dns", { protocol: "udp" }))).toBe(
      "service-FY5PMXPG-kube-system/kube-dns/udp/dns",
    );
    const front = servicePort("shop/front");
    expect(serviceName("external", front)).toBe("external-5JQP6IZY-shop/front/tcp/");
    expect(endpointName("endpoint", front, { address: "10.180.0.1", port: 8443 })).toBe(
      "endpoint-6EY7AUIF-shop/front/tcp/__10.180.0.1/8443",
    );
    expect(endpointName("affinity", front, { address: "fd00:10::1", port: 8443 })).toBe(
      "affinity-LILRDYYQ-shop/front/tcp/__fd00.10..1/8443",
    );
  });

  const long = servicePort(`${"n".repeat(63)}/${"s".repeat(63)}:${"p".repeat(63)}`, { protocol: "sctp" });
  const backend = { address: "2001:db8:1111:2222:3333:4444:5555:6666", port: 65_535 };

  it("11/8 are cut at 240 letters after their prefix, and never exceed 256", () => {
    expect(serviceName("external", long)).toHaveLength("external-".length + 205);
    const name = endpointName("endpoint", long, backend);
    expect(name).toHaveLength("endpoint-".length + 240);
    expect(name).toMatch(/^endpoint-73B35SHW-nnn.*__2001\.db8\.1111\.2222\.3333\.4444\.5\.\.\.$/);
  });

  it("11/9 differ by their hash where the rest was cut off", () => {
    const other = endpointName("endpoint", long, { ...backend, port: 65_534 });
    const name = endpointName("endpoint", long, backend);
    expect(other.slice(18)).toBe(name.slice(18));
    expect(other).not.toBe(name);
  });

  it("11/10 comments of elements have at most 128 bytes, of whole characters", () => {
    expect(shortComment("x".repeat(128))).toHaveLength(128);
    expect(shortComment("x".repeat(129))).toBe("x".repeat(128));
    expect(shortComment(`${"x".repeat(127)}é`)).toBe("x".repeat(127));
  });
});
