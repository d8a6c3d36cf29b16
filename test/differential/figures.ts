// The figures in the metrics of a kube-proxy, the real one or ours, after the same story.
import { setTimeout as sleep } from "node:timers/promises";
import { httpGet } from "../kernel/http.ts";
import { changedShopSlice, shop, shopSlice } from "../kernel/shop.ts";
import { eventually } from "../kernel/site.ts";
import { endpoint, service, slice } from "../objects.ts";
import { otherNodeName } from "../places.ts";
import type { KubeObject } from "../reference/objects.ts";
import type { Configuration } from "../reference/proxy.ts";
import { withProxy } from "./watched.ts";

/** Figures that do not depend on time, nor on how often a program syncs. */
const lasting = [
  "sync_proxy_rules_(?:service|endpoint)_changes_(?:total|pending)",
  "sync_proxy_rules_no_local_endpoints_total",
  "network_programming_duration_seconds_count",
  "proxy_(?:healthz|livez)_total",
  "nftables_localhost_nodeport_listeners",
  "sync_proxy_rules_iptables_total",
];
const line = new RegExp(`^kubeproxy_((?:${lasting.join("|")})\\S*) (.*)$`, "gm");

export type Figures = Readonly<Record<string, number>>;

/** A Service comes; a slice gets another annotation, changes twice, once for a reason older than the program, and another goes. */
export function figuresOf(program: string, configuration: Configuration, wanted: Figures): Promise<Figures> {
  const second = shopSlice("web-2", { endpoints: [endpoint("10.180.1.9")] });
  const objects = [...shop({ type: "NodePort", ports: [web] }), second, ...distant()];
  return withProxy(program, configuration, objects, async (proxy, { netns }, metrics) => {
    const figures = async (): Promise<Figures> =>
      Object.fromEntries(
        [...(await metrics()).matchAll(line)].map(([, name, value]) => [name, Number(value)]),
      );
    const samples = 'network_programming_duration_seconds_count{ip_family="IPv4"}';
    proxy.api.put(
      asObject("v1", "Service", service({ clusterIP: "172.30.0.12" }, { metadata: { name: "new" } })),
    );
    proxy.api.put(shopSlice("web-1", { metadata: { name: "web-1", annotations: { colour: "red" } } }));
    proxy.api.put(changedShopSlice(new Date()));
    await eventually(async () => (await figures())[samples] === 1, `latency reported by ${program}`);
    proxy.api.put(withEndpoints(changedShopSlice(new Date(0)), "10.180.0.9"));
    proxy.api.remove("EndpointSlice", "shop", "web-2");
    for (const path of ["healthz", "healthz", "healthz", "livez"])
      await httpGet(netns, `http://127.0.0.1:10256/${path}`);
    const isAsWanted = async () => JSON.stringify(sorted(await figures())) === JSON.stringify(sorted(wanted));
    await eventually(isAsWanted, "figures", 10_000).catch(() => {});
    // What comes too often comes now.
    await sleep(300);
    return figures();
  });
}

const web = { name: "http", protocol: "TCP", port: 80, nodePort: 30080 };

/** A Service whose policies are Local, with two ports and no endpoint on this node. */
function distant(): KubeObject[] {
  const ports = [
    { name: "a", protocol: "TCP", port: 81 },
    { name: "b", protocol: "TCP", port: 82 },
  ];
  const spec = {
    ...{ type: "LoadBalancer", clusterIP: "172.30.0.11", ports, healthCheckNodePort: 32_000 },
    ...{ externalTrafficPolicy: "Local", internalTrafficPolicy: "Local" },
  };
  const labels = { "kubernetes.io/service-name": "distant" };
  const away = slice([endpoint("10.180.1.1", { nodeName: otherNodeName })], {
    metadata: { name: "distant-1", labels },
    ports: ports.map(({ name, protocol, port }) => ({ name, protocol, port })),
  });
  return [
    asObject("v1", "Service", service(spec, { metadata: { name: "distant" } })),
    asObject("discovery.k8s.io/v1", "EndpointSlice", away),
  ];
}

function withEndpoints(object: KubeObject, address: string): KubeObject {
  return { ...object, endpoints: [endpoint(address)] };
}

function asObject(apiVersion: string, kind: string, made: object): KubeObject {
  return { apiVersion, kind, ...made } as unknown as KubeObject;
}

function sorted(figures: Figures): [string, number][] {
  return Object.entries(figures).sort(([a], [b]) => (a < b ? -1 : 1));
}
