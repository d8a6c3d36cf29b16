// The Kubernetes objects we read, and which of their fields: everything else is dropped while it is parsed.

export type Kind = "Service" | "EndpointSlice" | "Node" | "ServiceCIDR";

export const kinds: readonly Kind[] = ["Service", "EndpointSlice", "Node", "ServiceCIDR"];

/** JSON of any shape: nothing in it may be trusted before `manifests/` has parsed it. */
export type Raw = Readonly<Record<string, unknown>>;

export const labels = {
  proxyName: "service.kubernetes.io/service-proxy-name",
  headless: "service.kubernetes.io/headless",
  serviceName: "kubernetes.io/service-name",
  zone: "topology.kubernetes.io/zone",
} as const;

export const triggerAnnotation = "endpoints.kubernetes.io/last-change-trigger-time";

/** Keeps of an object only what matters to us. Takes any JSON; wrong types stay recognisable, so that parsing reports them. */
export function slim(kind: Kind, object: unknown): unknown {
  return pick(shapes[kind], object);
}

/** own: text that hardly repeats. shared: text that many objects repeat; one copy of it is kept. */
export type Shape = "own" | "shared" | readonly [Shape] | { readonly [field: string]: Shape };

const named = { name: "own", namespace: "shared" } as const;

/** `protobuf/kinds.ts` has the number of each of these fields. */
export const shapes = {
  Service: {
    metadata: { ...named, labels: { [labels.proxyName]: "shared" } },
    spec: {
      type: "shared",
      clusterIP: "own",
      clusterIPs: ["own"],
      ipFamilies: ["shared"],
      ports: [{ name: "shared", protocol: "shared", port: "own", nodePort: "own" }],
      externalIPs: ["own"],
      loadBalancerSourceRanges: ["shared"],
      sessionAffinity: "shared",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: "own" } },
      internalTrafficPolicy: "shared",
      externalTrafficPolicy: "shared",
      healthCheckNodePort: "own",
    },
    status: { loadBalancer: { ingress: [{ ip: "own", ipMode: "shared" }] } },
  },
  EndpointSlice: {
    metadata: {
      ...named,
      labels: { [labels.serviceName]: "own", [labels.headless]: "shared" },
      annotations: { [triggerAnnotation]: "own" },
    },
    addressType: "shared",
    ports: [{ name: "shared", protocol: "shared", port: "own" }],
    endpoints: [
      {
        addresses: ["own"],
        conditions: { ready: "own", serving: "own", terminating: "own" },
        nodeName: "shared",
        hints: { forZones: [{ name: "shared" }], forNodes: [{ name: "shared" }] },
        targetRef: { kind: "shared", name: "own" },
      },
    ],
  },
  Node: {
    metadata: { ...named, labels: { [labels.zone]: "shared" }, deletionTimestamp: "own" },
    spec: { podCIDRs: ["own"], taints: [{ key: "shared" }] },
    status: { addresses: [{ type: "shared", address: "own" }] },
  },
  ServiceCIDR: { metadata: named, spec: { cidrs: ["own"] } },
} as const satisfies Readonly<Record<Kind, Shape>>;

function pick(shape: Shape, value: unknown): unknown {
  if (typeof value === "string") return shape === "shared" ? intern(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return isList(shape) ? value.map((item) => pick(shape[0], item)) : [];
  return typeof shape === "string" || isList(shape) ? {} : pickFields(shape, value as Raw);
}

function pickFields(shape: { readonly [field: string]: Shape }, value: Raw): Raw {
  const kept: Record<string, unknown> = {};
  for (const field in shape) {
    if (value[field] !== undefined) kept[field] = pick(shape[field]!, value[field]);
  }
  return kept;
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

const interned = new Map<string, string>();
const internedAtMost = 50_000;
/** Names have up to 253 characters; longer text would stay after its object is gone. */
const longestInterned = 256;

/** The first copy of equal text. Dropping an entry costs memory, never correctness. */
export function intern(text: string): string {
  if (text.length > longestInterned) return text;
  const known = interned.get(text);
  if (known !== undefined) return known;
  if (interned.size >= internedAtMost) interned.clear();
  interned.set(text, text);
  return text;
}
