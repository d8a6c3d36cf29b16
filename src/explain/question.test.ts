// Which senders and destinations `explain` accepts, and its errors for others.
import { describe, expect, it } from "vitest";
import { parseFrom, parseTo } from "./question.ts";

describe("the sender", () => {
  it.each([
    ["pod:10.0.1.5", { kind: "pod", address: "10.0.1.5" }],
    ["pod:fd00:1::5", { kind: "pod", address: "fd00:1::5" }],
    ["pod:shop/web-1", { kind: "named", namespace: "shop", name: "web-1" }],
    ["web-1", { kind: "named", namespace: null, name: "web-1" }],
    ["pod/web-1", { kind: "named", namespace: null, name: "web-1", only: "pod" }],
    ["po/shop/web-1", { kind: "named", namespace: "shop", name: "web-1", only: "pod" }],
    ["node/node-a", { kind: "named", namespace: null, name: "node-a", only: "node" }],
    ["node/a.example.com", { kind: "named", namespace: null, name: "a.example.com", only: "node" }],
    ["pod:10.0.1.5,fd00:1::5", { kind: "pod", address: "10.0.1.5", otherAddress: "fd00:1::5" }],
    ["node", { kind: "node" }],
    ["outside", { kind: "outside", address: "203.0.113.9", anybody: true }],
    ["pod:[fd00:1::5]", { kind: "pod", address: "fd00:1::5" }],
    ["outside:198.51.100.7", { kind: "outside", address: "198.51.100.7" }],
    ["198.51.100.7", { kind: "outside", address: "198.51.100.7" }],
  ])("%s", (text, value) => {
    expect(parseFrom(text)).toEqual({ ok: true, value });
  });

  it.each([
    "",
    "outside:web",
    "pod:",
    "pod/",
    "node/a/b/c",
    "pod:10.0.1.5,10.0.1.6",
    "10.0.0.1.2:80",
    "Web_1",
  ])("refuses %j with an example", (text) => {
    const answer = parseFrom(text);
    expect(answer).toMatchObject({ ok: false, reason: expect.stringContaining("outside:203.0.113.9") });
  });
});

describe("where to", () => {
  it.each([
    ["10.96.0.10:53/udp", { kind: "address", address: "10.96.0.10", port: 53, protocol: "udp" }],
    ["[fd30::10]:80", { kind: "address", address: "fd30::10", port: 80, protocol: "tcp" }],
    ["svc/shop/web:80", { kind: "service", namespace: "shop", name: "web", port: "80", protocol: null }],
    ["svc/shop/web:http", { kind: "service", namespace: "shop", name: "web", port: "http", protocol: null }],
    ["svc/web", { kind: "service", namespace: null, name: "web", port: null, protocol: null }],
    ["svc/shop/dns:53/udp", { kind: "service", namespace: "shop", name: "dns", port: "53", protocol: "udp" }],
    ["web", { kind: "service", namespace: null, name: "web", port: null, protocol: null }],
    ["web:81", { kind: "service", namespace: null, name: "web", port: "81", protocol: null }],
    ["shop/web:80", { kind: "service", namespace: "shop", name: "web", port: "80", protocol: null }],
    [
      "service/shop/dns:53/udp",
      { kind: "service", namespace: "shop", name: "dns", port: "53", protocol: "udp" },
    ],
    ["web.shop", { kind: "service", namespace: "shop", name: "web", port: null, protocol: null }],
    ["svc/web.shop:81", { kind: "service", namespace: "shop", name: "web", port: "81", protocol: null }],
    [
      "web.shop.svc.cluster.local:http",
      { kind: "service", namespace: "shop", name: "web", port: "http", protocol: null },
    ],
    [
      "http://web.shop.svc:81/",
      { kind: "service", namespace: "shop", name: "web", port: "81", protocol: null },
    ],
    ["nodeport:30080", { kind: "nodePort", port: 30080, protocol: "tcp" }],
    ["nodeport:30053/udp", { kind: "nodePort", port: 30053, protocol: "udp" }],
  ])("%s", (text, value) => {
    const answer = parseTo(text);
    expect(answer).toEqual({ ok: true, value });
  });

  it.each(["", "Web", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.1:80/icmp", "svc/a/b/c", "nodeport:x"])(
    "refuses %j with an example",
    (text) => {
      const answer = parseTo(text);
      expect(answer).toMatchObject({ ok: false, reason: expect.stringContaining("svc/shop/web:80") });
    },
  );

  it.each([
    ["10.0.0.1", "10.0.0.1:80"],
    ["fd30::10", "[fd30::10]:80"],
    ["nodeport:99999", "invalid port 99999"],
  ])("refuses %j and names what is missing", (text, right) => {
    expect(parseTo(text)).toMatchObject({ ok: false, reason: expect.stringContaining(right) });
  });

  it.each(["10.0:80", "10.0.0", "nodeport:x", "svc/a/b/c", "?"])("does not take %j for a Service", (text) => {
    expect(parseTo(text)).toMatchObject({ ok: false });
  });
});
