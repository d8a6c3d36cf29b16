// The playground end to end: real packets agree with explain, and changes take effect.
import { describe, expect, it, vi } from "vitest";
import { runLine } from "../../playground/commands.ts";
import { queryDaemon } from "../../src/observe/status/client.ts";
import { playgroundFor, reasonToSkipPlayground } from "./ground.ts";

const reason = reasonToSkipPlayground();

const senders = [
  "web-1",
  "web-2",
  "node-a",
  "node-b",
  "outside",
  "outside:203.0.113.200",
  "outside:2001:db8:9::9",
];
const places = [
  "svc/shop/web:80",
  "svc/shop/cart:80",
  "svc/shop/stock:9090",
  "svc/shop/dns:53",
  "svc/shop/broken:80",
  "nodeport:30080",
  "nodeport:30081",
  "198.51.100.10:80",
  "[2001:db8::2]:30080",
  "[2001:db8::3]:30080",
  "[fd30::10]:80",
];

describe.each(["nftables", "iptables", "userspace"] as const)("playground in %s mode", (mode) => {
  const place = playgroundFor(mode, reason);
  /** What clients of a Service without endpoints see; a relay accepts before it knows the endpoints. */
  const noEndpoints =
    mode === "userspace" ? { tcp: "closed", udp: "silence" } : { tcp: "rejected", udp: "rejected" };

  it("handles real packets as explain predicts", async () => {
    const differences: string[] = [];
    for (const from of senders) {
      for (const to of places) {
        if (!canMeet(from, to)) continue;
        const explained = await place.playground.explain(from, to);
        const { result } = await place.playground.send(from, to);
        const met = result.kind === "answered" ? result.by.endpoint : result.kind;
        if (!agrees(explained, met))
          differences.push(`${from} → ${to}: got ${met}, but explain predicts\n${explained}`);
      }
    }
    expect(differences).toEqual([]);
  });

  it("lists the tracked connections of each node", async () => {
    await runLine(place.playground, "send web-1 svc/shop/cart:80");
    const lines = await runLine(place.playground, "flows svc/shop/cart");
    expect(lines.filter((line) => line.startsWith("node-"))).toEqual(["node-a:", "node-b:"]);
    const today = mode === "userspace" ? /relay$/ : /(eligible|excluded)/;
    expect(lines.some((line) => / shop\/cart/.test(line) && today.test(line))).toBe(true);
    expect(await runLine(place.playground, "flows svc/shop/crat")).toEqual([
      expect.stringContaining("did you mean svc/shop/cart?"),
    ]);
    expect((await runLine(place.playground, "flows pod/web-1"))[0]).toBe("node-a:");
  });

  it("follows scaling, readiness, draining and a flushed ruleset", async () => {
    await runLine(place.playground, "scale cart 4");
    expect(await answersOf("web-1", "svc/shop/cart:80")).toMatch(/^cart-\d$/);
    await runLine(place.playground, "scale stock 1");
    await runLine(place.playground, "kill stock-2");
    await runLine(place.playground, "unready stock-1");
    expect(await answersOf("web-1", "svc/shop/stock:9090")).toBe(noEndpoints.tcp);
    await runLine(place.playground, "ready stock-1");
    expect(await answersOf("web-1", "svc/shop/stock:9090")).toBe("stock-1");
    await runLine(place.playground, "drain node-b");
    const staying = place.playground.api
      .list("Pod")
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const nodes = staying.map(({ spec }) => (spec as { nodeName: string }).nodeName);
    expect(new Set(nodes)).toEqual(new Set(["node-a"]));
    await runLine(place.playground, "uncordon node-b");
    await runLine(place.playground, "flush node-a");
    expect(await answersOf("outside", "nodeport:30080")).toMatch(/^web-\d$/);
  });

  it("keeps terminating pods serving when no other endpoint is ready", async () => {
    const pods = () =>
      place.playground.api
        .list("Pod")
        .flatMap(({ metadata: { name } }) => (name.startsWith("dns-") ? [name] : []));
    await runLine(place.playground, "scale dns 1");
    const [first] = pods();
    // Longer than the following steps take on a busy machine.
    await runLine(place.playground, `stop ${first} 60`);
    const next = await answersOf("web-1", "svc/shop/dns:53");
    expect(next).toMatch(/^dns-/);
    expect(next).not.toBe(first);
    expect((await runLine(place.playground, "explain web-1 svc/shop/dns")).join("\n")).toContain(
      "terminating, and others are ready",
    );
    await runLine(place.playground, "scale dns 0");
    expect(await answersOf("web-1", "svc/shop/dns:53")).toMatch(/^dns-/);
    expect((await runLine(place.playground, "explain web-1 svc/shop/dns")).join("\n")).toContain(
      "no endpoint is ready: all that are serving while they terminate",
    );
    await vi.waitFor(() => expect(pods()).toEqual([first]), { timeout: 60_000, interval: 100 });
    await runLine(place.playground, "wait");
    expect(await answersOf("web-1", "svc/shop/dns:53")).toBe(first);
    await runLine(place.playground, `stop ${first} 0`);
    await runLine(place.playground, "wait");
    expect(pods()).toEqual([]);
    expect(await answersOf("web-1", "svc/shop/dns:53")).toBe(noEndpoints.udp);
  });

  it("user/6: distinguishes a rejection by the proxy from a refusal by a closed port", async () => {
    const deaf = { kind: "Service", metadata: { name: "deaf", namespace: "shop" } };
    const ports = [
      { name: "tcp", port: 80, targetPort: 81 },
      { name: "udp", port: 80, targetPort: 81, protocol: "UDP" },
    ];
    place.playground.apply({ ...deaf, spec: { selector: { app: "web" }, ports } });
    await place.playground.settled();
    const outcome = async (from: string, to: string) =>
      (await runLine(place.playground, `send ${from} ${to}`))[0];
    const rejected = mode === "userspace" ? /accepted, then closed/ : /rejected by the proxy of node-a;/;
    const refused =
      mode === "userspace" ? /accepted, then closed/ : /refused by 10\.0\.\d\.\d+:81: nothing listens/;
    expect(await outcome("web-1", "svc/shop/broken:80")).toMatch(rejected);
    expect(await outcome("web-1", "svc/shop/deaf:tcp")).toMatch(refused);
    expect(await outcome("web-1", "svc/shop/deaf:udp")).toMatch(mode === "userspace" ? /no answer/ : refused);
    expect(await outcome("outside", "nodeport:30999")).toMatch(
      /refused by 192\.168\.0\.2:30999: nothing listens there;/,
    );
    place.playground.api.remove("Service", "shop", "deaf");
  });

  it("restarts a proxy that was killed", async () => {
    const status = () => queryDaemon(place.playground.statusSocketOf("node-b"), "/").catch(() => null);
    const before = (await status())?.pid;
    expect(before).toBeGreaterThan(1);
    process.kill(before!, "SIGKILL");
    await vi.waitFor(async () => expect((await status())?.pid ?? before).not.toBe(before), 20_000);
    await runLine(place.playground, "scale web 4");
    expect(await answersOf("node-b", "svc/shop/web:80")).toMatch(/^web-/);
  });

  it("explains invalid commands", async () => {
    expect(await runLine(place.playground, "fly")).toEqual([
      expect.stringContaining("send, explain, flows, scale"),
    ]);
    expect(await runLine(place.playground, "scale web many")).toEqual([
      expect.stringContaining("scale web 5"),
    ]);
    expect(await runLine(place.playground, "kill missing")).toEqual([
      expect.stringContaining("known: cart-1"),
    ]);
    expect(await runLine(place.playground, "send web-1")).toEqual([
      expect.stringContaining("svc/shop/cart:80"),
    ]);
  });

  async function answersOf(from: string, to: string): Promise<string> {
    const { result } = await place.playground.send(from, to);
    return result.kind === "answered" ? result.by.pod : result.kind;
  }
});

/** Cluster IPs are not routed from outside, and a client reaches only addresses of its own family. */
function canMeet(from: string, to: string): boolean {
  // Ports of another node are explained by that node.
  if (!from.startsWith("outside"))
    return !to.startsWith("[2001:") || (from.endsWith("1") && to.includes("::2]"));
  if (to.startsWith("svc/") || to.startsWith("[fd30")) return false;
  const isIPv6 = from.includes("2001:");
  return to.startsWith("nodeport:") || to.startsWith("[") === isIPv6;
}

/** Whether the result of a packet is among the outcomes that explain predicts. */
function agrees(explained: string, met: string): boolean {
  if (met === "rejected") return /^outcome +reject/m.test(explained);
  // A packet that no rule matches reaches a closed port.
  if (met === "refused") return /^outcome +pass/m.test(explained);
  if (met === "closed") return /^outcome +close/m.test(explained);
  // A relay without endpoints drops datagrams.
  if (met === "silence") return /^outcome +(drop|close)/m.test(explained);
  if (met === "unreachable") return /^outcome +pass/m.test(explained);
  return explained.includes(`%  ${met} `);
}
