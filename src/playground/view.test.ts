// Tests of the live view: it fits the screen, and has colours only when asked for.
import { describe, expect, it } from "vitest";
import type { ApiObject } from "./api/object.ts";
import { renderView, type ViewState } from "./view.ts";

const object = (kind: string, name: string, fields: object): ApiObject => ({
  apiVersion: "v1",
  kind,
  metadata: {
    name,
    namespace: "shop",
    uid: name,
    resourceVersion: "1",
    creationTimestamp: "2026-01-01T00:00:00Z",
  },
  ...fields,
});

const slice = object("EndpointSlice", "web-ipv4", {
  addressType: "IPv4",
  endpoints: [
    {
      addresses: ["10.0.1.1"],
      nodeName: "node-a",
      conditions: { ready: true },
      targetRef: { name: "web-1" },
    },
    {
      addresses: ["10.0.2.1"],
      nodeName: "node-b",
      conditions: { ready: false },
      targetRef: { name: "web-2" },
    },
  ],
});

const state: ViewState = {
  mode: "nftables",
  url: "http://127.0.0.1:7443",
  kubeconfig: "/run/turnout-playground/1/kubeconfig",
  services: [
    object("Service", "web", {
      spec: { clusterIP: "172.30.0.10", ports: [{ port: 80, nodePort: 30080, protocol: "TCP" }] },
    }),
    object("Service", "broken", {
      spec: { clusterIP: "172.30.0.14", ports: [{ port: 80, protocol: "TCP" }] },
    }),
  ],
  pods: [object("Pod", "web-1", { spec: { nodeName: "node-a" } })],
  slices: [{ ...slice, metadata: { ...slice.metadata, labels: { "kubernetes.io/service-name": "web" } } }],
  nodes: [object("Node", "node-a", {}), object("Node", "node-b", { spec: { unschedulable: true } })],
  syncs: new Map([
    [
      "node-a",
      {
        news: { node: "node-a", family: "ipv4", trigger: "change", ms: 3, changedPorts: 1, operations: 2 },
        count: 4,
        at: 0,
      },
    ],
  ]),
  output: ["> send web-1 svc/shop/web:80", `  ${"a long answer ".repeat(20)}`],
  input: "scale web 5",
  busy: false,
  now: 5_000,
};

describe("the live view", () => {
  it.each([
    [80, 24],
    [200, 50],
    [40, 12],
  ])("fills %i×%i exactly", (width, height) => {
    for (const colour of [true, false]) {
      const lines = renderView(state, { width, height, colour });
      expect(lines).toHaveLength(height);
      for (const line of lines) expect(withoutColour(line).length).toBeLessThanOrEqual(width);
      expect(lines.at(-1)).toBe("> scale web 5");
    }
  });

  it("shows who answers, who does not, and what the proxies did", () => {
    const text = renderView(state, { width: 120, height: 30, colour: false }).join("\n");
    expect(text).toContain("web-1@a web-2@b!");
    expect(text).toContain("80:30080/tcp");
    expect(text).toContain("nobody: refused");
    expect(text).toContain("4 syncs, last 5 s ago: change, 1 ports, 2 operations, 3 ms");
    expect(text).toContain("node-b drained");
  });

  it("shows who is ending, and how many more there are than fit", () => {
    const endpoints = Array.from({ length: 12 }, (_, i) => ({
      addresses: [`10.0.1.${i}`],
      nodeName: "node-a",
      conditions: { ready: i > 0, serving: true, terminating: i === 0 },
      targetRef: { name: `web-${i}` },
    }));
    const slices = state.slices.map((each) => ({ ...each, endpoints }));
    const line = (width: number) =>
      renderView({ ...state, slices }, { width, height: 24, colour: false }).find((each) =>
        each.startsWith("web "),
      );
    expect(line(80)).toMatch(/ web-0@a↓ web-1@a web-2@a \+9$/);
    expect(line(200)).toMatch(/ web-11@a$/);
  });

  it("has colours only when asked", () => {
    expect(renderView(state, { width: 80, height: 24, colour: false }).join("")).not.toContain("\u001b");
    expect(renderView(state, { width: 80, height: 24, colour: true }).join("")).toContain(
      "\u001b[32mweb-1@a",
    );
  });
});

function withoutColour(line: string): string {
  return line.replaceAll(new RegExp(`${"\u001b"}\\[\\d+m`, "g"), "");
}
