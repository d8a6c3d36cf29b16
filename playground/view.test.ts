// Tests of the live view: it fits the screen, uses colours only on request, and matches the golden screens.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { ApiObject } from "./api/objects/object.ts";
import { helpLines } from "./commands.ts";
import { emptyLine, lineOf } from "./line.ts";
import { samplesOf } from "./samples.ts";
import { folded, widthOf } from "./text.ts";
import { promptColumn, renderView, type ViewState } from "./view.ts";

const esc = "\u001b";
const colours = new RegExp(`${esc}\\[\\d+m`, "g");

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
  noEndpoints: "refused",
  kubeconfig: "/run/turnout-playground/1/kubeconfig",
  services: [
    object("Service", "web", {
      spec: { clusterIP: "172.30.0.10", ports: [{ port: 80, nodePort: 30080, protocol: "TCP" }] },
      status: { loadBalancer: { ingress: [{ ip: "198.51.100.10" }] } },
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
        report: { node: "node-a", family: "ipv4", trigger: "change", ms: 3, changedPorts: 1, operations: 2 },
        count: 4,
        at: 0,
      },
    ],
  ]),
  output: ["> send web-1 svc/shop/web:80", `  ${"a long answer ".repeat(20)}`],
  scrolledLines: 0,
  line: lineOf("scale web 5"),
  busy: false,
  now: 5_000,
};

/** 200 Services with long names in two namespaces, two ports each, and long answers. */
const crowded: ViewState = {
  ...state,
  services: Array.from({ length: 200 }, (_, i) => {
    const service = object("Service", `a-service-with-a-rather-long-name-${i}`, {
      spec: {
        clusterIP: `172.30.0.${i}`,
        ports: [
          { port: 80, nodePort: 30000 + i, protocol: "TCP" },
          { port: 81, protocol: "TCP" },
        ],
        ...(i % 3 === 0 ? { sessionAffinity: "ClientIP", externalTrafficPolicy: "Local" } : {}),
      },
    });
    return { ...service, metadata: { ...service.metadata, namespace: i % 2 === 0 ? "team" : "other" } };
  }),
  slices: [
    {
      ...slice,
      metadata: {
        ...slice.metadata,
        namespace: "team",
        labels: { "kubernetes.io/service-name": "a-service-with-a-rather-long-name-0" },
      },
      endpoints: [{ addresses: ["10.9.0.1"] }],
    },
  ],
  output: Array.from({ length: 40 }, (_, i) => `  answer ${i}`),
  line: emptyLine,
  busy: true,
};

describe("the live view", () => {
  it.each([
    [80, 24],
    [200, 50],
    [40, 12],
    [30, 8],
    [10, 3],
  ])("fills %i×%i exactly", (width, height) => {
    for (const colour of [true, false]) {
      const lines = renderView(state, { width, height, colour });
      expect(lines).toHaveLength(height);
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
      expect(lines.at(-1)).toBe(width > 12 ? "> scale web 5" : "> … web 5");
    }
  });

  it("shows the endpoints of each Service and the last Sync of each node", () => {
    const text = renderView(state, { width: 120, height: 30, colour: false }).join("\n");
    expect(text).toContain("web-1@a web-2@b!");
    expect(text).toContain("80:30080/tcp");
    expect(text).toContain("none (refused)");
    expect(text).toContain("4 syncs  5 s ago: change, 1 port, 2 operations, 3 ms");
    expect(text).toContain("node-b cordoned");
  });

  it("marks terminating endpoints and counts those that do not fit", () => {
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
    expect(line(80)).toMatch(/ web-0@a↓ web-1@a \+10$/);
    expect(line(200)).toMatch(/ web-11@a$/);
  });

  it("escapes control characters in names", () => {
    const endpoints = [{ addresses: ["10.0.1.1"], targetRef: { name: "\u001b[2J\u009bmine\r" } }];
    const slices = state.slices.map((each) => ({ ...each, endpoints }));
    const shown = renderView({ ...state, slices }, { width: 200, height: 24, colour: false }).join("\n");
    expect(shown).toContain(String.raw`\u001b[2J\u009bmine\r`);
    expect(shown).not.toMatch(/(?!\n)\p{Cc}/u);
  });

  it("user/6: shows load-balancer addresses, and omits them on a narrow screen", () => {
    const [balanced, plain] = state.services as [ApiObject, ApiObject];
    const services = [
      balanced,
      { ...plain, spec: { ...(plain.spec as object), externalIPs: ["198.51.100.13", "198.51.100.14"] } },
      object("Service", "new", { spec: { type: "LoadBalancer", clusterIP: "172.30.0.15" } }),
    ];
    const shown = (width: number) =>
      renderView({ ...state, services }, { width, height: 24, colour: false }).join("\n");
    expect(shown(90)).toMatch(/^SERVICE +CLUSTER-IP +EXTERNAL-IP +PORT/m);
    expect(shown(90)).toMatch(/^web +172\.30\.0\.10 +198\.51\.100\.10 /m);
    expect(shown(90)).toMatch(/^broken +172\.30\.0\.14 +198\.51\.100\.13 \+1 /m);
    expect(shown(90)).toMatch(/^new +172\.30\.0\.15 +pending /m);
    expect(shown(60)).not.toContain("EXTERNAL-IP");
  });

  it("user/6: aligns the columns of Services with their headings, and the columns of nodes", () => {
    const long = object("Service", "six", {
      spec: { clusterIP: "fd30::1234:5678:9abc", ports: [{ port: 443, nodePort: 30443 }, { port: 1 }] },
    });
    const busy = { report: state.syncs.get("node-a")!.report, count: 123, at: 0 };
    const wide = {
      ...state,
      services: [...state.services, long],
      syncs: new Map(state.syncs).set("node-b", busy),
    };
    for (const colour of [false, true]) {
      const lines = renderView(wide, { width: 120, height: 24, colour }).map((line) =>
        line.replaceAll(colours, ""),
      );
      const at = (start: string, text: string) => lines.find((line) => line.startsWith(start))!.indexOf(text);
      const columns = ["CLUSTER-IP", "EXTERNAL-IP", "PORT", "ENDPOINTS"].map((name) => at("SERVICE", name));
      expect([at("web", "172."), at("web", "198."), at("web", "80:"), at("web", "web-1@a")]).toEqual(columns);
      expect([at("six", "fd30"), at("six", "443:"), at("six", "none (")]).toEqual([
        columns[0],
        ...columns.slice(2),
      ]);
      for (const text of [" pod", "sync", "5 s ago"]) expect(at("node-a", text)).toBe(at("node-b", text));
    }
  });

  it("uses colours only on request", () => {
    expect(renderView(state, { width: 80, height: 24, colour: false }).join("")).not.toContain("\u001b");
    expect(renderView(state, { width: 80, height: 24, colour: true }).join("")).toContain(
      "\u001b[32mweb-1@a",
    );
  });

  it("leaves half of the space for output, however many Services there are", () => {
    const lines = renderView(crowded, { width: 80, height: 24, colour: false });
    expect(lines).toContain("… and 195 more");
    expect(lines.filter((line) => line.startsWith("  answer "))).toHaveLength(7);
    const [long] = lines.filter((line) => line.endsWith(" 10.9.0.1"));
    expect(long).toMatch(/^team\/a-ser…ng-name-0 172\.30\.0\.0 +80:30000\/tcp \+1 10\.9\.0\.1$/);
  });

  it("scrolls back through the output and counts the lines above and below", () => {
    const [above, below] = [0, 20].map((back) =>
      renderView({ ...crowded, scrolledLines: back }, { width: 80, height: 24, colour: false }),
    );
    expect(above?.find((line) => line.includes("PgUp"))).toMatch(/^─ 33 lines above: PgUp ─+$/);
    expect(above?.some((line) => line.includes("PgDn"))).toBe(false);
    expect(below?.find((line) => line.includes("PgDn"))).toMatch(/^─ 20 lines below: PgDn ─+$/);
    expect(below).toContain("  answer 19");
  });

  it("shows the end of a long input line, also with wide characters", () => {
    const prompt = (input: string) =>
      renderView({ ...state, line: lineOf(input) }, { width: 40, height: 12, colour: false }).at(-1)!;
    expect(prompt(`send ${"x".repeat(50)} there`)).toMatch(/^> …x+ there$/);
    expect(widthOf(prompt("日本語".repeat(20)))).toBeLessThanOrEqual(40);
  });

  it("keeps the cursor visible and cuts the text after it", () => {
    const line = { before: "x".repeat(50), after: "y".repeat(9) };
    const prompt = renderView({ ...state, line }, { width: 40, height: 12, colour: false }).at(-1)!;
    expect(prompt).toMatch(/^> …x{36}…$/);
    expect(promptColumn(line, 40)).toBe(40);
    expect(promptColumn({ before: "日", after: "x" }, 40)).toBe(5);
  });

  it("shows only output on a very small screen", () => {
    const lines = renderView(crowded, { width: 40, height: 12, colour: false });
    expect(lines.slice(1, 9)).toEqual(Array.from({ length: 8 }, (_, i) => `  answer ${32 + i}`));
  });

  it("aligns a folded line with its text, not with its label", () => {
    const output = "  because   10.0.1.4 is in 10.0.1.0/24: traffic of a pod";
    const lines = renderView({ ...state, output: [output] }, { width: 40, height: 16, colour: false });
    expect(lines).toContain("  because   10.0.1.4 is in 10.0.1.0/24:");
    expect(lines).toContain("            traffic of a pod");
  });

  it("aligns a folded line with the last column in the left half", () => {
    const output =
      "             33.3 %  10.0.1.4:8080 on node-a  sees this node: the sender is not a pod of this node";
    expect(folded(output, 80)).toEqual([
      "             33.3 %  10.0.1.4:8080 on node-a  sees this node: the sender is not",
      "                     a pod of this node",
    ]);
  });

  it("prints help that fits into 80 columns", () => {
    for (const line of helpLines()) expect(widthOf(`  ${line}`)).toBeLessThanOrEqual(80);
  });

  describe.each([
    ["example", state],
    ["crowded", crowded],
  ])("of the %s", (name, shown) => {
    it.each([
      [80, 24],
      [200, 50],
    ])("matches the golden screen at %i×%i, without and with colour", async (width, height) => {
      for (const colour of [false, true]) {
        const screen = renderView(shown, { width, height, colour }).join("\n");
        const file = `view-${name}-${width}x${height}${colour ? "-colour" : ""}.txt`;
        await expect(`${screen.replaceAll("\u001b", "␛")}\n`).toMatchFileSnapshot(
          join(import.meta.dirname, "../test/golden/screens", file),
        );
      }
    });
  });
});

describe("sample requests", () => {
  it("are sent from existing pods to existing Services", () => {
    expect(samplesOf(state.services, state.pods)).toEqual([
      "send outside nodeport:30080",
      "send web-1 svc/shop/broken:80",
    ]);
    expect(samplesOf(state.services, [])).toContain("send node-a svc/shop/broken:80");
    const labelled = (name: string) => {
      const pod = object("Pod", name, {});
      return { ...pod, metadata: { ...pod.metadata, labels: { app: name } } };
    };
    const own = object("Service", "own", { spec: { selector: { app: "a" }, ports: [{ port: 80 }] } });
    expect(samplesOf([own], [labelled("a"), labelled("b")])).toEqual(["send b svc/shop/own:80"]);
    expect(samplesOf(crowded.services, [])).toHaveLength(6);
  });
});
