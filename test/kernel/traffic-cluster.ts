// The objects for tests of counters: Services of each kind with addresses of both families, and two pods.

const nodeYaml = `
apiVersion: v1
kind: Node
metadata: {name: node-a}
spec: {podCIDRs: [10.8.0.0/24, "fd00:8::/64"]}
status: {addresses: [{type: InternalIP, address: 192.168.7.1}, {type: InternalIP, address: "fd00:7::1"}]}
`;

type Shape = {
  readonly protocol?: string;
  readonly spec?: string;
  readonly pods?: readonly number[];
  readonly status?: string;
};

/** A dual-stack Service `shop/NAME` with cluster IPs that end in `n`. */
function service(
  name: string,
  n: number,
  { protocol = "TCP", spec = "", pods = [2, 3], status = "" }: Shape = {},
): string {
  const slice = (family: string, at: string) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-${family.toLowerCase()}, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: ${family}
ports: [{name: main, port: 8080, protocol: ${protocol}}]
endpoints: [${pods.map((pod) => `{addresses: ["${at}${pod}"], conditions: {ready: true}, nodeName: node-a}`).join(", ")}]
`;
  return `---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec:
  clusterIP: 172.31.0.${n}
  clusterIPs: [172.31.0.${n}, "fd00:99::${n}"]
  ipFamilies: [IPv4, IPv6]
  ipFamilyPolicy: RequireDualStack
  ports: [{name: main, port: 80, protocol: ${protocol}${spec.includes("NodePort") || spec.includes("LoadBalancer") ? `, nodePort: ${30000 + n}` : ""}}]
  ${spec}
${status}${slice("IPv4", "10.8.0.")}${slice("IPv6", "fd00:8::")}`;
}

const web = (pods: readonly number[]) =>
  service("web", 10, { spec: "type: NodePort\n  externalIPs: [198.51.100.7]", pods });
const dns = service("dns", 11, { protocol: "UDP" });
const sticky = service("sticky", 12, { spec: "sessionAffinity: ClientIP" });
const empty = service("empty", 13, { protocol: "UDP", pods: [] });
const ranged = service("ranged", 14, {
  spec: "type: LoadBalancer\n  loadBalancerSourceRanges: [10.99.0.0/16]",
  status: "status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}\n",
});
/** `pods`: the endpoints of `web`, by the last number of their addresses. */
export const cluster = (pods: readonly number[] = [2, 3]) =>
  [nodeYaml, web(pods), dns, sticky, empty, ranged].join("");
