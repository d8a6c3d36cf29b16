// Services, slices, Nodes and ServiceCIDRs with every field that is read, as the API server accepts them, and changes to them.
import type { Snapshot } from "../../src/model/snapshot.ts";

export const thisNode = "node-a";

export type Write = { readonly method: string; readonly path: string; readonly body: object };

const services = "/api/v1/namespaces/default/services";
const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const nodes = "/api/v1/nodes";
const cidrs = "/apis/networking.k8s.io/v1/servicecidrs";

const post = (path: string, body: object): Write => ({ method: "POST", path, body });
const patch = (path: string, body: object): Write => ({ method: "PATCH", path, body });

export function objects(): readonly Write[] {
  return [
    ...[thisNode, "node-b"].flatMap(nodeWrites),
    post(cidrs, { metadata: { name: "more" }, spec: { cidrs: ["172.29.0.0/24", "fd00:29::/120"] } }),
    ...Array.from({ length: 40 }, (_, i) => serviceWrites(i)).flat(),
    ...Array.from({ length: 60 }, (_, i) => post(slices, sliceObject(i))),
  ];
}

function nodeWrites(name: string, i: number): readonly Write[] {
  const labels = { "topology.kubernetes.io/zone": `zone-${i}`, "kubernetes.io/hostname": name };
  const taints = i === 0 ? [] : [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }];
  return [
    post(nodes, {
      metadata: { name, labels, annotations: { note: "ü🚂" } },
      spec: { podCIDR: `10.${i}.0.0/24`, podCIDRs: [`10.${i}.0.0/24`, `fd00:10:${i}::/64`], taints },
    }),
    patch(`${nodes}/${name}/status`, {
      status: {
        addresses: [
          { type: "Hostname", address: name },
          { type: "InternalIP", address: `192.168.0.${i + 1}` },
          { type: "InternalIP", address: `fd00:192::${i + 1}` },
          { type: "ExternalIP", address: `203.0.113.${i + 1}` },
        ],
        conditions: [{ type: "Ready", status: "True", reason: "KubeletReady", message: "" }],
        capacity: { cpu: "4", memory: "8Gi", pods: "110" },
      },
    }),
  ];
}

const types = ["ClusterIP", "NodePort", "LoadBalancer"] as const;
const families = [
  { ipFamilyPolicy: "SingleStack" },
  { ipFamilyPolicy: "RequireDualStack" },
  { ipFamilyPolicy: "SingleStack", ipFamilies: ["IPv6"] },
] as const;

function serviceWrites(i: number): readonly Write[] {
  const name = `service-${i}`;
  const type = types[i % 3]!;
  const isExternal = type !== "ClusterIP";
  const isBalanced = type === "LoadBalancer";
  const labels = { app: name, ...(i === 39 ? { "service.kubernetes.io/service-proxy-name": "other" } : {}) };
  const spec = {
    type,
    ...families[(i >> 2) % 3]!,
    selector: { app: name },
    ports: [
      { name: "web", port: 80, targetPort: i % 2 === 0 ? 8080 : "http" },
      ...(i % 4 === 0 ? [{ name: "dns", port: 53, protocol: "UDP", appProtocol: "kubernetes.io/dns" }] : []),
      ...(i % 8 === 0 ? [{ name: "sctp", port: 99, protocol: "SCTP" }] : []),
    ],
    ...(i % 5 === 0 ? { sessionAffinity: "ClientIP" } : {}),
    ...(i % 10 === 0 ? { sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 + i } } } : {}),
    ...(i % 6 === 1 ? { internalTrafficPolicy: "Local" } : {}),
    ...(isExternal && i % 4 === 2 ? { externalTrafficPolicy: "Local" } : {}),
    ...(isBalanced && i % 2 === 0 ? { loadBalancerSourceRanges: ["198.51.100.0/24", "203.0.113.7/32"] } : {}),
    ...(i % 7 === 3 ? { externalIPs: [`192.168.99.${i}`] } : {}),
    ...(i % 9 === 0 ? { trafficDistribution: "PreferSameZone", publishNotReadyAddresses: true } : {}),
  };
  const ingress = [
    { ip: `198.51.100.${i}`, ipMode: i % 2 === 0 ? "VIP" : "Proxy" },
    { hostname: "lb.example" },
  ];
  return [
    post(services, { metadata: { name, labels, annotations: { [`a.example/${i}`]: "x".repeat(i) } }, spec }),
    ...(isBalanced ? [patch(`${services}/${name}/status`, { status: { loadBalancer: { ingress } } })] : []),
  ];
}

export function sliceObject(i: number, generation = 0): object {
  const isIPv6 = i % 3 === 2;
  const address = (e: number) =>
    isIPv6 ? `fd00:10::${i}:${e + generation}` : `10.${e}.${generation}.${i + 1}`;
  return {
    metadata: {
      name: `service-${i % 40}-${i}`,
      namespace: "default",
      labels: {
        "kubernetes.io/service-name": `service-${i % 40}`,
        ...(i === 59 ? { "service.kubernetes.io/headless": "" } : {}),
      },
      annotations: { "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T03:04:05.123Z" },
    },
    addressType: isIPv6 ? "IPv6" : "IPv4",
    ports: [
      { name: "web", port: 8080 + (i % 3), protocol: "TCP" },
      ...(i % 4 === 0 ? [{ name: "dns", port: 5353, protocol: "UDP" }] : []),
      ...(i % 11 === 0 ? [{ name: "", port: 9 }] : []),
    ],
    endpoints: Array.from({ length: 1 + (i % 7) }, (_, e) => ({
      addresses: [address(e)],
      ...(e % 4 === 0 ? {} : { conditions: conditions[e % conditions.length] }),
      ...(e % 3 === 0 ? {} : { nodeName: e % 2 === 0 ? thisNode : "node-b", zone: `zone-${e % 2}` }),
      ...(e % 3 === 1 ? { hints: { forZones: [{ name: "zone-0" }, { name: "zone-1" }] } } : {}),
      ...(e % 3 === 2 ? { hints: { forNodes: [{ name: thisNode }] } } : {}),
      ...(e % 2 === 0 ? { hostname: `host-${e}` } : {}),
      targetRef: { kind: "Pod", namespace: "default", name: `pod-${i}-${e}`, uid: `${i}-${e}` },
    })),
  };
}

const conditions = [
  { ready: true },
  { ready: false, serving: true, terminating: true },
  { ready: false, serving: false, terminating: false },
  { ready: true, serving: true, terminating: false },
];

export type Step = { readonly change: readonly Write[]; readonly check: (snapshot: Snapshot) => boolean };

/** Each step can be repeated under another name. */
export function changes(how: string): readonly Step[] {
  const name = `new-${how.replace(" ", "-")}`;
  const portOf = ({ ipv4 }: Snapshot) => ipv4.ports.get(`default/${name}/tcp/web`);
  const zone = `zone-${name}`;
  const slice = sliceObject(0) as { metadata: { name: string; labels: object } };
  const metadata = { ...slice.metadata, name, labels: { "kubernetes.io/service-name": name } };
  const range = how === "list" ? "172.28.0.0/24" : "172.27.0.0/24";
  return [
    {
      change: [
        post(services, { metadata: { name }, spec: { ports: [{ name: "web", port: 80 }] } }),
        post(slices, { ...slice, metadata }),
      ],
      check: (snapshot) => portOf(snapshot)?.endpoints.length === 1,
    },
    {
      change: [
        patch(`${slices}/${name}`, { endpoints: (sliceObject(6) as { endpoints: object[] }).endpoints }),
      ],
      check: (snapshot) => portOf(snapshot)?.endpoints.length === 7,
    },
    {
      change: [
        patch(`${nodes}/${thisNode}`, { metadata: { labels: { "topology.kubernetes.io/zone": zone } } }),
      ],
      check: ({ node }) => node?.zone === zone,
    },
    {
      change: [post(cidrs, { metadata: { name }, spec: { cidrs: [range] } })],
      check: ({ ipv4 }) => ipv4.serviceCIDRs.includes(range),
    },
    {
      change: [
        { method: "DELETE", path: `${services}/${name}`, body: {} },
        { method: "DELETE", path: `${slices}/${name}`, body: {} },
      ],
      check: (snapshot) => portOf(snapshot) === undefined,
    },
  ];
}
