// A story of several managers who write the same objects, told to an API server; and what is kept of its answers.

type Answer = { readonly code: number; readonly body: unknown };
export type Tell = (method: string, path: string, body: unknown, contentType: string) => Promise<Answer>;

type Step = {
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  readonly body: unknown;
};

const services = "/api/v1/namespaces/default/services";
const deployments = "/apis/apps/v1/namespaces/default/deployments";
const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

const service = (spec: object, metadata: object = {}) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", ...metadata },
  spec,
});
const deployment = (spec: object) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec,
});
const template = (...containers: object[]) => ({
  metadata: { labels: { app: "web" } },
  spec: { containers },
});
const slice = (...addresses: string[]) => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: "web" },
  addressType: "IPv4",
  endpoints: addresses.map((address) => ({ addresses: [address] })),
  ports: [{ name: "http", port: 80, protocol: "TCP" }],
});

const step = (what: string, method: string, contentType: string, path: string, body: unknown): Step => ({
  what,
  method,
  path,
  contentType: `application/${contentType}`,
  body,
});
const appliesTo = (object: string, manager: string, body: object, options: string) =>
  step(
    `${manager} applies${options}`,
    "PATCH",
    "apply-patch+yaml",
    `${object}?fieldManager=${manager}${options}`,
    body,
  );
const applies = (manager: string, path: string, body: object, options = "") =>
  appliesTo(`${path}/web`, manager, body, options);
const patches = (manager: string, path: string, body: object, type = "merge") =>
  step(
    `${manager} patches (${type})`,
    "PATCH",
    `${type}-patch+json`,
    `${path}?fieldManager=${manager}`,
    body,
  );
const creates = (manager: string, path: string, body: object) =>
  step(`${manager} creates`, "POST", "json", `${path}?fieldManager=${manager}`, body);

const http = { name: "http", port: 80 };
const replicas = {
  selector: { matchLabels: { app: "web" } },
  template: template({ name: "web", image: "one" }),
};

const clientSide = { selector: { app: "old" }, ports: [http] };
const old = (spec: object, metadata: object = {}) => service(spec, { name: "old", ...metadata });
const record = (text: string) => ({
  annotations: { "kubectl.kubernetes.io/last-applied-configuration": text },
});
const kubectlApplies = (body: object, manager = "kubectl", options = "") =>
  appliesTo(`${services}/old`, manager, body, options);
const noted = (text: string) => patches("kubectl-annotate", `${services}/old`, { metadata: record(text) });

/** `kubectl apply` from its own side and from the server's, on one object. */
const mixed: readonly Step[] = [
  creates(
    "kubectl-client-side-apply",
    services,
    old(clientSide, record(JSON.stringify(service(clientSide)))),
  ),
  noted("{ no json"),
  kubectlApplies(old({ ...clientSide, selector: { app: "new" } })),
  noted(JSON.stringify(service(clientSide))),
  kubectlApplies(old({ ...clientSide, selector: { app: "new" } })),
  kubectlApplies(old({ ...clientSide, selector: { app: "new" }, sessionAffinity: "ClientIP" })),
  // What it applied before it may change, whoever wrote the same in between; but not what somebody changed.
  patches("joe", `${services}/old`, { spec: { selector: null } }),
  patches("joe", `${services}/old`, { spec: { selector: { app: "new" } } }),
  kubectlApplies(old({ ...clientSide, selector: { app: "newer" } }, { labels: { b: "1", a: "2" } })),
  patches("joe", `${services}/old`, { spec: { selector: { app: "joes" } } }),
  kubectlApplies(old({ ...clientSide, selector: { app: "newest" } })),
  // Another manager leaves the record alone.
  kubectlApplies(old({ ...clientSide, selector: { app: "other" } }), "other", "&force=true"),
  kubectlApplies(
    old({ ...clientSide, selector: { app: "other" } }, { annotations: { note: "1" } }),
    "kubectl",
    "&dryRun=All",
  ),
  // A record that cannot be read, or is of something else, allows nothing.
  ...[
    "{ no json",
    "null",
    "[]",
    '"text"',
    JSON.stringify({ ...old({ selector: { app: "other" } }), apiVersion: "v2" }),
  ].flatMap((text) => [noted(text), kubectlApplies(old({ ...clientSide, selector: { app: "last" } }))]),
  kubectlApplies(old({ ...clientSide, selector: { app: "other" } }, record("{ no json"))),
  noted(""),
  kubectlApplies(old({ ...clientSide, selector: { app: "other" } })),
];

const steps: readonly Step[] = [
  applies(
    "ann",
    services,
    service({ selector: { app: "web" }, ports: [http] }, { labels: { tier: "front" } }),
  ),
  applies("bob", services, service({ selector: { app: "web" }, ports: [http] })),
  applies("bob", services, service({ sessionAffinity: "ClientIP" })),
  applies("cid", services, service({ ports: [{ ...http, name: "other" }] }, { labels: { tier: "back" } })),
  applies(
    "cid",
    services,
    service({ ports: [{ ...http, name: "other" }] }, { labels: { tier: "back" } }),
    "&dryRun=All&force=true",
  ),
  applies(
    "cid",
    services,
    service({ ports: [{ ...http, name: "other" }] }, { labels: { tier: "back" } }),
    "&force=true",
  ),
  applies("ann", services, service({ selector: { app: "web" } })),
  applies("cid", services, service({ ports: [{ ...http, name: "other" }] }, { labels: { kind: "x" } })),
  applies("dan", services, service({ ports: [{ name: "more", port: 81, targetPort: 8081 }] })),
  applies("dan", services, service({ ports: [{ name: "dns", port: 53, protocol: "UDP" }] })),
  applies("eve", services, service({ selector: { other: "web" } })),
  patches("fay", `${services}/web`, { metadata: { labels: { x: "1" } }, spec: { sessionAffinity: "None" } }),
  applies("bob", services, service({ sessionAffinity: "ClientIP", type: "ClusterIP" })),
  patches(
    "gus",
    `${services}/web`,
    { metadata: { labels: { x: null } }, spec: { ports: [{ port: 80, targetPort: 8080 }] } },
    "strategic-merge",
  ),
  applies("", services, service({})),
  applies("hal", services, service({}, { managedFields: [{ manager: "hal" }] })),
  applies("hal", services, service({}, { resourceVersion: "1" })),
  patches(
    "ivy",
    `${services}/web`,
    [{ op: "replace", path: "/metadata/managedFields", value: [{}] }],
    "json",
  ),
  patches("ivy", `${services}/web`, { metadata: { labels: { y: "1" } } }),
  applies("ivy", services, service({ sessionAffinity: "ClientIP" })),
  applies("ivy", services, service({ publishNotReadyAddresses: true, selector: { app: "web" } })),

  creates("kubectl-create", services, {
    ...service({
      type: "NodePort",
      selector: { app: "web" },
      ports: [http, { name: "dns", port: 53, protocol: "UDP", nodePort: 30053 }],
    }),
    metadata: { name: "made", labels: { a: "b" }, annotations: {} },
  }),
  ...mixed,

  creates("kubectl-create", deployments, deployment({ replicas: 1, ...replicas })),
  applies("ann", deployments, deployment({ replicas: 2, ...replicas })),
  applies("ann", deployments, deployment(replicas)),
  applies(
    "bob",
    deployments,
    deployment({ template: template({ name: "web", image: "two", ports: [{ containerPort: 80 }] }) }),
  ),
  applies(
    "bob",
    deployments,
    deployment({
      template: template({ name: "side", image: "two" }, { name: "web", ports: [{ containerPort: 80 }] }),
    }),
  ),
  applies(
    "bob",
    deployments,
    deployment({ template: template({ name: "web", ports: [{ containerPort: 81 }] }) }),
  ),
  patches(
    "gus",
    `${deployments}/web`,
    { spec: { template: template({ name: "web", ports: [{ containerPort: 81, name: "x" }] }) } },
    "strategic-merge",
  ),
  applies(
    "bob",
    deployments,
    deployment({ template: template({ name: "web", ports: [{ containerPort: 82 }] }) }),
  ),
  applies(
    "bob",
    deployments,
    deployment({
      template: template({ name: "web" }, { name: "side", image: "two", ports: [{ containerPort: 82 }] }),
    }),
  ),
  applies(
    "bob",
    deployments,
    deployment({ template: template({ name: "web" }, { name: "side", image: "two" }) }),
  ),
  patches("gus", `${deployments}/web/status`, { status: { replicas: 1 } }),
  applies("ann", deployments, deployment(replicas)),
  patches("kubectl-scale", `${deployments}/web/scale`, { spec: { replicas: 3 } }),
  applies("ann", deployments, deployment({ replicas: 2, ...replicas })),
  applies("ann", deployments, deployment({ replicas: 2, ...replicas }), "&force=true"),

  applies("ann", slices, slice("10.0.1.1")),
  applies("bob", slices, slice("10.0.1.1", "10.0.1.2")),
  applies("bob", slices, slice("10.0.1.1", "10.0.1.2"), "&force=true"),
];

/** One entry for each step: what was asked, and what came of it without what differs from run to run. */
export async function tellStory(tell: Tell): Promise<object[]> {
  const told: object[] = [];
  for (const { what, method, path, contentType, body } of steps) {
    const answer = await tell(method, path, body, contentType);
    told.push({
      what: `${what} ${path.split("/").at(-1)!.split("?")[0]}`,
      code: answer.code,
      ...gistOf(answer.body as Body),
    });
  }
  return told;
}

type Body = {
  readonly kind: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: unknown };
  readonly metadata?: {
    readonly labels?: unknown;
    readonly annotations?: unknown;
    readonly managedFields?: readonly Entry[];
  };
  readonly spec?: Readonly<Record<string, unknown>> & {
    readonly template?: { readonly spec: { readonly containers: readonly Container[] } };
  };
  readonly endpoints?: readonly { readonly addresses: unknown }[];
};

type Entry = { readonly manager: string; readonly time: string; readonly fieldsV1: Fields };
type Fields = { readonly [part: string]: Fields };
type Container = { readonly name: unknown; readonly image: unknown; readonly ports: unknown };

function gistOf({ kind, message, reason, details, metadata, spec, endpoints }: Body): object {
  if (kind === "Status") return { message, reason, fields: fieldsOf(details?.causes) };
  const { ports, selector, type, sessionAffinity, replicas: count, template: pods } = spec ?? {};
  const owners = (metadata?.managedFields ?? [])
    .map(({ time: _time, fieldsV1, ...owner }) => ({ ...owner, fields: told(fieldsV1) }))
    .sort((a, b) => (a.manager < b.manager ? -1 : 1));
  return {
    labels: metadata?.labels,
    annotations: metadata?.annotations,
    spec: { ports: withoutNodePorts(ports), selector, type, sessionAffinity, replicas: count },
    containers: pods?.spec.containers.map(({ name, image, ports: open }) => ({ name, image, ports: open })),
    addresses: endpoints?.map(({ addresses }) => addresses),
    owners,
  };
}

function fieldsOf(causes: unknown): unknown {
  return (causes as { field: string; reason: string }[] | undefined)?.map(({ field }) => field);
}

/** Chosen by the server, at random. */
function withoutNodePorts(ports: unknown): unknown {
  return (ports as { nodePort?: number }[] | undefined)?.map(({ nodePort: _chosen, ...port }) => port);
}

/** Defaults that only real containers and Deployments need. */
const realOnly =
  /^f:(progressDeadlineSeconds|revisionHistoryLimit|strategy|imagePullPolicy|resources|terminationMessage.*|dnsPolicy|schedulerName|terminationGracePeriodSeconds)$/;

const maps = /^f:(metadata|annotations)$/;

/** Without what the playground does not have; of maps and lists their fields are told, not that they are there at all. */
function told(tree: Fields, name = ""): Fields {
  const kept = Object.entries(tree).filter(
    ([part]) => !realOnly.test(part) && (part !== "." || name.startsWith("k:")),
  );
  const inside = kept.map(([part, inner]) => [part, told(inner, part)] as const);
  return Object.fromEntries(
    inside.filter(([part, inner]) => !maps.test(part) || Object.keys(inner).length > 0),
  );
}
