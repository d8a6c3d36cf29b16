// A story of Services that change their type, families and ports, log to an API server; and what is kept of its answers.
import type { SendRequest } from "./small-api.ts";

type Step =
  | { readonly kind: "create"; readonly name: string; readonly spec: object; readonly labels?: object }
  | { readonly kind: "patch"; readonly name: string; readonly spec: object };

const create = (name: string, spec: object, labels?: object): Step => ({
  kind: "create",
  name,
  spec,
  ...(labels === undefined ? {} : { labels }),
});
const patch = (name: string, ...specs: object[]): Step[] =>
  specs.map((spec) => ({ kind: "patch", name, spec }));
const refused = (...specs: object[]): Step[] => specs.map((spec) => create("no", spec));

const ports = [{ port: 80 }];
const named = (...names: string[]) => names.map((name, i) => ({ name, port: 80 + i }));
const outside = { type: "LoadBalancer", externalTrafficPolicy: "Local", ports };

const steps: readonly Step[] = [
  create("life", { ports }),
  ...patch(
    "life",
    { type: "NodePort" },
    { type: "ClusterIP" },
    { type: "LoadBalancer", externalTrafficPolicy: "Local" },
    { externalTrafficPolicy: "Cluster" },
    { loadBalancerSourceRanges: ["10.0.0.0/8"] },
    { type: "NodePort" },
    { type: "NodePort", loadBalancerSourceRanges: null },
    { type: "ExternalName", externalName: "example.com" },
    { type: "ClusterIP", externalName: null },
    { clusterIP: "172.30.77.77" },
    { ipFamilyPolicy: "PreferDualStack" },
    { sessionAffinity: "ClientIP" },
    { ipFamilyPolicy: "SingleStack" },
    { ipFamilies: ["IPv6"] },
    { ports: [{ port: 80, nodePort: 30450 }] },
    { externalTrafficPolicy: "Local" },
    { sessionAffinityConfig: { clientIP: { timeoutSeconds: 90_000 } } },
    { sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } },
    { sessionAffinity: "None" },
    { ports: [] },
    { ports: [{ port: 80 }, { port: 81 }] },
    { ports: named("A") },
    { ports: named("a", "a") },
    { ports: named("a", "b") },
    { ports: [{ port: 80, targetPort: "a-name-that-is-too-long" }] },
    { ports: [{ port: 80, targetPort: "http" }] },
    { ports: [{ port: 80, targetPort: 0 }] },
    { externalIPs: ["127.0.0.1"] },
    { externalIPs: ["nonsense"] },
    { externalIPs: ["0.0.0.0"] },
    { externalIPs: ["192.0.2.1"] },
    { externalTrafficPolicy: "Local" },
    { externalTrafficPolicy: null, externalIPs: null },
    { selector: { "a b": "c" } },
    { selector: { a: "b c" } },
    { healthCheckNodePort: 30_460 },
    { internalTrafficPolicy: "Local", trafficDistribution: "PreferSameZone" },
  ),
  create("bad", { ports }, { "a b": "c" }),
  create("bad", { ports }, { "example.com/a": "b c" }),
  create("good", { ports }, { "example.com/a": "" }),
  create("headless", { clusterIP: "None", selector: { app: "web" } }),
  ...patch("headless", { type: "NodePort", ports }, { clusterIP: "172.30.50.50", ports }, { ports }),
  create("open", { clusterIP: "None", ports }),
  create("name", { type: "ExternalName", externalName: "example.com" }),
  create("local", outside),
  create("without", { ...outside, allocateLoadBalancerNodePorts: false }),
  create("taken", { clusterIP: "172.30.60.60", ports }),
  create("six", { ipFamilies: ["IPv6"], ports }),
  create("both", { ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6"], ports }),
  create("two", { ipFamilyPolicy: "PreferDualStack", clusterIP: "172.30.60.61", ports }),
  create("zeros", {
    type: "NodePort",
    ports: [{ port: 80, nodePort: 0, name: "" }],
    healthCheckNodePort: 0,
    publishNotReadyAddresses: false,
    selector: {},
    externalIPs: [],
  }),
  create("shared", {
    type: "NodePort",
    ports: [
      { name: "a", port: 80, nodePort: 30_470 },
      { name: "b", port: 80, nodePort: 30_470, protocol: "UDP" },
    ],
  }),
  ...refused(
    { type: "ExternalName" },
    { type: "ExternalName", externalName: "example.com", clusterIP: "172.30.60.62" },
    { ...outside, loadBalancerSourceRanges: ["10.0.0.0/33"] },
    { type: "NodePort", ports: [{ port: 80, nodePort: 20_000 }] },
    { type: "NodePort", ports: [{ port: 80, nodePort: 30_470 }] },
    { type: "NodePort", ports: [{ port: 80, nodePort: 30_470, protocol: "UDP" }] },
    { clusterIP: "10.1.2.3", ports },
    { clusterIP: "172.30.60.60", ports },
    { clusterIP: "None", type: "LoadBalancer", ports },
    { ipFamilies: ["IPv6", "IPv4"], ports },
    { ipFamilies: ["IPv5"], ports },
    { ipFamilies: ["IPv4", "IPv4"], ipFamilyPolicy: "PreferDualStack", ports },
    { clusterIPs: ["172.30.60.63"], ports },
    { clusterIP: "172.30.60.64", clusterIPs: ["172.30.60.65"], ports },
    { type: "NodePort", externalTrafficPolicy: "local", ports },
  ),
];

const path = "/api/v1/namespaces/default/services";

/** One line for each step: the request, and the response without random values. */
export async function sendServiceLife(send: SendRequest): Promise<string[]> {
  const log: string[] = [];
  for (const step of steps) {
    const { name, spec } = step;
    const { code, body } =
      step.kind === "create"
        ? await send("POST", path, { metadata: { name, labels: step.labels }, spec }, "application/json")
        : await send("PATCH", `${path}/${name}`, { spec }, "application/merge-patch+json");
    log.push(`${step.kind} ${name} ${JSON.stringify(spec)}\n  ${code} ${gistOf(body as Body, spec)}`);
  }
  return log;
}

type Body = {
  readonly reason?: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: unknown;
};

function gistOf({ reason, spec, status }: Body, given: object): string {
  if (spec === undefined) return String(reason);
  const wanted = JSON.stringify(given);
  const chosen = /"(clusterIPs?|nodePort|healthCheckNodePort)":(\[[^\]]*\]|"[^"]*"|\d+)/g;
  const sorted = JSON.stringify({ spec, status }, [...allKeys({ spec, status })].sort());
  return sorted.replace(chosen, (text, name: string, value: string) =>
    wanted.includes(value) || value.includes("None")
      ? text
      : `"${name}":${value.replaceAll(/[\da-f.:]+/g, "…")}`,
  );
}

function allKeys(value: unknown): Set<string> {
  const keys = new Set<string>();
  JSON.stringify(value, (key, each: unknown) => {
    keys.add(key);
    return each;
  });
  return keys;
}
