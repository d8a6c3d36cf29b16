// Tests of Tab completion at the prompt.
import { describe, expect, it } from "vitest";
import type { ApiObject } from "./api/objects/object.ts";
import { choicesOf, choicesText, completed } from "./complete.ts";

const object = (name: string, fields: object = {}, namespace = "shop"): ApiObject => ({
  apiVersion: "v1",
  kind: "",
  metadata: { name, namespace, uid: name, resourceVersion: "1", creationTimestamp: "" },
  ...fields,
});

const there: Readonly<Record<string, readonly ApiObject[]>> = {
  Pod: [object("cart-1"), object("web-1"), object("web-2"), object("twin"), object("twin", {}, "other")],
  Node: [object("node-a"), object("node-b")],
  Deployment: [object("web"), object("cart")],
  Service: [
    object("web", {
      spec: {
        ports: [
          { port: 80, nodePort: 30080, protocol: "TCP" },
          { port: 53, nodePort: 30053, protocol: "UDP" },
        ],
      },
    }),
    object("headless", { spec: { clusterIP: "None", ports: [{ port: 80 }] } }),
  ],
};
const choices = choicesOf((kind) => there[kind] ?? []);

describe("Tab", () => {
  it.each([
    ["se", "send "],
    ["send c", "send cart-1 "],
    ["send w", "send web-"],
    ["send ou", "send outside "],
    ["send cart-1 s", "send cart-1 svc/shop/web:"],
    ["send cart-1 nodeport:30053", "send cart-1 nodeport:30053/udp "],
    ["  explain  cart-1  nodeport:3005", "  explain  cart-1  nodeport:30053/udp "],
    ["scale c", "scale cart "],
    ["kill other", "kill other/twin "],
    ["drain node-", "drain node-"],
    ["drain web", "drain web"],
    ["help ", "help "],
    ["help dr", "help drain "],
    ["nothing ", "nothing "],
    ["send a b c ", "send a b c "],
    ["constructor ", "constructor "],
    ["日", "日"],
  ])("completes %j to %j", (line, whole) => {
    expect(completed(line, choices).line).toBe(whole);
  });

  it("lists the candidates", () => {
    expect(completed("send web-", choices).choices).toEqual(["web-1", "web-2"]);
    expect(completed("", choices).choices).toContain("quit");
    expect(completed("send web-1 ", choices).choices).toEqual([
      "svc/shop/web:80",
      "nodeport:30080",
      "svc/shop/web:53",
      "nodeport:30053/udp",
    ]);
    expect(completed("send web-1 svc/shop/web:80", choices).choices).toEqual([]);
  });

  it("prints the first 40 of many candidates", () => {
    expect(choicesText(["a", "b"])).toBe("  a, b");
    expect(choicesText(Array.from({ length: 100 }, (_, i) => `${i}`))).toMatch(/ 39 and 60 more$/);
  });
});
