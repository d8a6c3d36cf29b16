// The page docs/metrics.md, made from the table: what there is, where, and what kube-proxy has that we leave out.
import { type Definition, everywhere } from "./define.ts";
import { prometheusType } from "./registry.ts";
import { genericMetrics, kubeProxyMetrics, sliMetrics, turnoutMetrics } from "./table.ts";

export function metricsPage(): string {
  return [
    "# Metrics",
    "",
    "Served at `/metrics` on `metricsBindAddress` in Prometheus' text format 0.0.4. This page is made from",
    "`src/observe/metrics/table.ts`; to renew it, run `npx vitest run --project unit src/observe/metrics -u`.",
    "A metric with labels has no series until it is first used. All help texts begin with the stability, as in",
    "Kubernetes; none of these metrics is deprecated or hidden in v1.37.",
    "",
    ...section(
      "kube-proxy's own",
      "Names, types, labels and buckets are those of kube-proxy v1.37.",
      kubeProxyMetrics,
    ),
    ...section("Those of every Kubernetes component", "", genericMetrics),
    ...section("Turnout's own", "", turnoutMetrics),
    ...section("Served at `/metrics/slis`", "", sliMetrics),
    "## Left out",
    "",
    "| Metric of kube-proxy | Why |",
    "|---|---|",
    ...omitted.map(([name, why]) => `| ${name} | ${why} |`),
    "",
  ].join("\n");
}

const omitted: readonly (readonly [string, string])[] = [
  ["`go_*`", "there is no Go runtime; `turnout_heap_used_bytes` is the size of the JavaScript heap"],
  ["`workqueue_*`", "nothing here works through such a queue"],
  [
    "`rest_client_transport_*`, `rest_client_dns_*`",
    "our client has neither a transport cache nor its own resolver",
  ],
  ["`rest_client_exec_plugin_*`", "set only by credential plugins, which a node proxy does not use"],
  [
    "`aggregator_*`, `apiserver_*`, `authentication_*`, …",
    "of library code linked into kube-proxy, without meaning for it",
  ],
  ["`kubeproxy_sync_proxy_rules_winkernel_*`", "registered on Windows only"],
  ["native histograms", "need the protobuf format, which Prometheus only requests when configured to"],
];

function section(title: string, about: string, table: Readonly<Record<string, Definition>>): string[] {
  return [
    `## ${title}`,
    "",
    ...(about === "" ? [] : [about, ""]),
    "| Name | Type | Labels | Buckets | Where | Meaning |",
    "|---|---|---|---|---|---|",
    ...Object.values(table).map(row),
    "",
  ];
}

function row(definition: Definition): string {
  const labels = definition.labels.map((label) => `\`${label}\``).join(", ");
  const cells = [
    `\`${definition.name}\``,
    prometheusType(definition),
    labels,
    buckets(definition),
    where(definition),
    definition.help,
  ];
  return `| ${cells.join(" | ")} |`;
}

function buckets({ buckets: bounds }: Definition): string {
  if (bounds.length <= 3) return "";
  return `${bounds.length}: ${bounds[0]}, ${bounds[1]}, … ${bounds.at(-1)}`;
}

function where({ scope: { modes, gate } }: Definition): string {
  const named = modes.length === everywhere.modes.length ? "all modes" : modes.join(", ");
  return gate === null ? named : `${named} with \`${gate}\``;
}
