// Short ways to write Kubernetes objects in tests; every field can be overridden.

type Fields = Record<string, unknown>;

/** A ClusterIP Service `shop/web` with one TCP port 80 named `http`. */
export function service(spec: Fields = {}, rest: { metadata?: Fields; status?: Fields } = {}): Fields {
  return {
    metadata: { namespace: "shop", name: "web", ...rest.metadata },
    spec: {
      type: "ClusterIP",
      clusterIP: "172.30.0.10",
      ports: [{ name: "http", protocol: "TCP", port: 80 }],
      ...spec,
    },
    ...(rest.status && { status: rest.status }),
  };
}

/** An IPv4 slice `shop/web-1` of that Service: its endpoints answer on 8080. */
export function slice(endpoints: readonly unknown[], rest: Fields & { metadata?: Fields } = {}): Fields {
  return {
    addressType: "IPv4",
    ports: [{ name: "http", protocol: "TCP", port: 8080 }],
    endpoints,
    ...rest,
    metadata: {
      namespace: "shop",
      name: "web-1",
      labels: { "kubernetes.io/service-name": "web" },
      ...rest.metadata,
    },
  };
}

/** A ready endpoint. */
export function endpoint(address: string, rest: Fields = {}): Fields {
  return { addresses: [address], conditions: { ready: true, serving: true, terminating: false }, ...rest };
}

export function node(name: string, rest: Fields & { metadata?: Fields } = {}): Fields {
  return {
    status: { addresses: [{ type: "InternalIP", address: "192.168.0.2" }] },
    ...rest,
    metadata: { name, ...rest.metadata },
  };
}

export function serviceCIDR(name: string, ...cidrs: readonly unknown[]): Fields {
  return { metadata: { name }, spec: { cidrs } };
}
