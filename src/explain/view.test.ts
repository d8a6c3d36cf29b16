// What a daemon sends for one question answers it as its whole state would, and its whole state can be sent in chunks.
import fc from "fast-check";
import { expect, it } from "vitest";
import { snapshotOf as familySnapshot, packet, servicePort, settings } from "../../test/clusters.ts";
import { endpoint, servicePort as plainPort } from "../../test/support/routed.ts";
import type { ModeName } from "../config/modes.ts";
import { type Family, families } from "../model/address.ts";
import { noCauses, noTriggers, type ServicePort, type Snapshot } from "../model/snapshot.ts";
import { modes } from "../modes/index.ts";
import { route } from "../routing/routes.ts";
import { parseFrom, parseTo, senderText, type To } from "./question.ts";
import { type BothRoutes, questionOf, type Sender } from "./resolve.ts";
import { trace } from "./trace.ts";
import { snapshotOf, type View, viewFor, viewsOf } from "./view.ts";

const twoFamilies = <T>(make: (family: Family) => fc.Arbitrary<T>) =>
  fc.record({ ipv4: make("ipv4"), ipv6: make("ipv6") });

it.each(["nftables", "iptables", "ipvs", "userspace"] as const)("in %s mode", (mode) => {
  let questions = 0;
  let smaller = 0;
  fc.assert(
    fc.property(
      twoFamilies((family) => fc.array(checked(servicePort(family)), { minLength: 1, maxLength: 6 })),
      twoFamilies(settings),
      fc.constantFrom(...families).chain((family) => packet(family)),
      fc.constantFrom("address", "nodePort", "service"),
      fc.constantFrom("web", "dns", "nobody"),
      (ports, both, { from: origin, to: target }, kind, name) => {
        const whole = snapshot(ports);
        const sender = senderOf(origin);
        const to = toOf(kind, target, ports, name);
        const all = routesOf(whole, both);
        const view = viewFor(whole, [both.ipv4.nodeIP, both.ipv6.nodeIP], sender, to);
        const part = routesOf(snapshotOf([throughJson(view)]), both);
        expect(answer(mode, sender, to, part)).toEqual(answer(mode, sender, to, all));
        questions++;
        if (view.ipv4.ports.length + view.ipv6.ports.length < whole.ipv4.ports.size + whole.ipv6.ports.size)
          smaller++;
      },
    ),
    { numRuns: 1500 },
  );
  expect(smaller).toBeGreaterThan(questions / 4);
});

it.each(["node", "pod:10.0.1.5", "outside:203.0.113.9", "pod:fd00::1"])(
  "%s is written as it is read",
  (text) => {
    const from = parseFrom(text);
    expect(from.ok && from.value.kind !== "named" && senderText(from.value)).toBe(text);
  },
);

it.each(["svc/shop/web", "svc/shop/web:80", "172.30.0.1:80"])("%s concerns one Service of many", (text) => {
  const ports = Array.from({ length: 100 }, (_, i) =>
    plainPort(`shop/${i === 1 ? "web" : `s${i}`}`, { clusterIP: `172.30.0.${i}` }),
  );
  const to = parseTo(text);
  if (!to.ok) throw new Error(to.reason);
  const view = viewFor(snapshot({ ipv4: ports, ipv6: [] }), [], { kind: "node" }, to.value);
  expect(view.ipv4.ports.map(({ name }) => name)).toEqual(["web"]);
});

it("sends Services with many endpoints in smaller chunks", () => {
  const endpoints = Array.from({ length: 1000 }, (_, i) => endpoint(`10.180.${i >> 8}.${i & 255}:80`));
  const ports = Array.from({ length: 40 }, (_, i) => plainPort(`shop/s${i}`, { endpoints }));
  const views = [...viewsOf(snapshot({ ipv4: ports, ipv6: [] }), 200)];
  expect(Math.max(...views.map(({ ipv4 }) => ipv4.ports.length))).toBe(10);
  expect(views.flatMap(({ ipv4 }) => ipv4.ports)).toHaveLength(40);
});

it("sends its whole state in chunks, none of them large", () => {
  fc.assert(
    fc.property(
      twoFamilies((family) => fc.array(checked(servicePort(family)), { maxLength: 9 })),
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      (ports, most, isKnown) => {
        const whole = { ...snapshot(ports), ...(isKnown ? facts : {}) };
        const views = [...viewsOf(whole, most)];
        expect(
          Math.max(...views.map(({ ipv4, ipv6 }) => ipv4.ports.length + ipv6.ports.length)),
        ).toBeLessThanOrEqual(most);
        expect(plain(snapshotOf(views.map(throughJson)))).toEqual(plain(whole));
      },
    ),
  );
});

const facts: Pick<Snapshot, "node" | "problems"> = {
  node: {
    name: "node-a",
    zone: "a",
    addresses: ["192.0.2.1"],
    podCIDRs: ["10.0.0.0/24"],
    eligibleForLoadBalancers: true,
  },
  problems: [{ kind: "ignored", object: "Service shop/web", field: "spec", message: "is odd" }],
};

function throughJson(view: View): View {
  return JSON.parse(JSON.stringify(view)) as View;
}

function plain({ ipv4, ipv6, node, problems }: Snapshot): unknown {
  const family = ({ ports, serviceCIDRs }: Snapshot[Family]) => ({
    ports: new Map(ports.entries()),
    serviceCIDRs,
  });
  return { ipv4: family(ipv4), ipv6: family(ipv6), node, problems };
}

it("sends only the requested Service among thousands", () => {
  const ports = Array.from({ length: 3000 }, (_, i) => ({
    ...fc.sample(servicePort("ipv4"), { numRuns: 1, seed: 7 })[0]!,
    key: `shop/web-${i}/tcp/`,
    service: `shop/web-${i}`,
    name: `web-${i}`,
    clusterIP: `172.30.${i >> 8}.${i & 255}`,
    externalIPs: [],
    loadBalancerIPs: [],
    nodePort: 0,
    healthCheckNodePort: 0,
  }));
  const to = parseTo("svc/shop/web-77:80");
  const view = viewFor(snapshot({ ipv4: ports, ipv6: [] }), [], { kind: "node" }, to.ok ? to.value : never());
  expect(view.ipv4.ports.map(({ name }) => name)).toEqual(["web-77"]);
});

/** Some with a port for health checks, and with endpoints that do not serve, whatever else they contain. */
function checked(ports: fc.Arbitrary<ServicePort>): fc.Arbitrary<ServicePort> {
  return fc
    .tuple(ports, fc.constantFrom(0, 80, 30443), fc.boolean())
    .map(([port, healthCheckNodePort, serve]) => ({
      ...port,
      healthCheckNodePort,
      endpoints: port.endpoints.map((endpoint) => ({ ...endpoint, serving: endpoint.serving && serve })),
    }));
}

function never(): never {
  throw new Error("this is a place");
}

function snapshot(ports: Readonly<Record<Family, readonly ServicePort[]>>): Snapshot {
  const { ipv4, ipv6 } = ports;
  const rest = {
    node: null,
    triggeredAt: noTriggers,
    causes: noCauses,
    problems: [],
  };
  return { ipv4: familySnapshot(ipv4, "ipv4"), ipv6: familySnapshot(ipv6, "ipv6"), ...rest };
}

function senderOf({ origin, address }: { origin: "pod" | "node" | "elsewhere"; address: string }): Sender {
  if (origin === "node") return { kind: "node" };
  // Pods of other nodes too.
  return { kind: /^(10\.|fd00)/.test(address) ? "pod" : "outside", address };
}

function toOf(
  kind: To["kind"],
  target: { address: string; port: number; protocol: "tcp" | "udp" | "sctp" | "icmp" },
  ports: Readonly<Record<Family, readonly ServicePort[]>>,
  name: string,
): To {
  const protocol = target.protocol === "icmp" ? "tcp" : target.protocol;
  if (kind === "address") return { ...target, kind, protocol };
  if (kind === "nodePort") return { kind, port: target.port, protocol };
  const known = name === "nobody" ? undefined : ports[target.address.includes(":") ? "ipv6" : "ipv4"][0];
  return {
    kind,
    namespace: known?.namespace ?? "shop",
    name: known?.name ?? name,
    port: known?.portName || null,
    protocol: null,
  };
}

function routesOf(
  { ipv4, ipv6 }: Snapshot,
  both: Readonly<Record<Family, Parameters<typeof route>[2]>>,
): BothRoutes {
  return { ipv4: route(null, ipv4, both.ipv4), ipv6: route(null, ipv6, both.ipv6) };
}

/** The whole answer, or why there is none. */
function answer(mode: ModeName, from: Sender, to: To, routes: BothRoutes): unknown {
  const question = questionOf(from, to, routes);
  if (!question.ok) return question.reason;
  const { family, packet } = question.value;
  return trace(modes[mode], routes[family], packet);
}
