// A report on a change of mode, as text: what changes, for whom, why, and what to do about it.
import type { BehaviorChange } from "./behavior-changes.ts";
import type { PacketChange } from "./packets.ts";
import type { ProbeSender, Subject } from "./probes.ts";
import type { Report } from "./report.ts";

/** What is wrong with the node itself, or remains on it. */
export type NodeRemark = { readonly kind: "blocks" | "remark"; readonly message: string };

export function printReport(report: Report, remarks: readonly NodeRemark[] | null): string {
  const { from, to, node, services, packets, habits, settings } = report;
  const sections: (readonly [string, readonly string[]])[] = [
    ["Packets", packets.map((change) => printPackets(change))],
    ["Besides", habits.map(printHabit)],
    ["Settings", settings.map(({ field, value, message }) => block(`${field}: ${value}`, [["", message]]))],
    [
      "This node",
      (remarks ?? []).map(({ kind, message }) => block(kind === "blocks" ? `!! ${message}` : message, [])),
    ],
  ];
  const shown = sections.filter(([, blocks]) => blocks.length > 0);
  return [
    `From ${from} to ${to} mode, as ${node} sees it: ${count(services, "Service")}\n`,
    ...shown.map(([title, blocks]) => `${title}\n\n${blocks.join("\n")}`),
    `${summary(report, remarks ?? [])}\n`,
  ].join("\n");
}

function printPackets(change: PacketChange): string {
  const { kind, subject, who, before, after, because, concerns, advice } = change;
  const everywhere = concerns.map(({ service, at }) =>
    service === "" ? at[0]! : `${service} (${at.join(", ")})`,
  );
  return block(`${signs[kind]} ${names[subject]}, from ${who.map((each) => senders[each]).join(", ")}`, [
    ["before", before],
    ["after", after],
    ["why", because],
    ["do", advice],
    ["where", some(everywhere)],
  ]);
}

function printHabit({ before, after, advice, services }: BehaviorChange): string {
  return block(`~ ${after}`, [
    ["before", before],
    ["do", advice],
    ["where", services === null ? null : some(services)],
  ]);
}

const signs = { lost: "-", gained: "+", otherwise: "~" } as const;

const names: Readonly<Record<Subject, string>> = {
  clusterIP: "cluster IPs",
  loadBalancerIP: "load-balancer addresses",
  externalIP: "external IPs",
  nodePort: "NodePorts",
  otherAddress: "NodePorts on other addresses of the node",
  loopback: "NodePorts on loopback",
  itself: "NodePorts of a Service whose endpoint is the sender itself",
  undefinedPort: "ports that a Service does not define",
  ping: "ping to cluster IPs",
  unallocated: "addresses of the Services' network that no Service has",
};

const senders: Readonly<Record<ProbeSender, string>> = {
  pod: "pods of this node",
  node: "the node itself",
  outside: "outside",
  allowed: "outside, within the source ranges",
  "endpoint elsewhere": "an endpoint on another node",
};

const most = 6;

function some(items: readonly string[]): string {
  const rest = items.length - most;
  return `${items.slice(0, most).join(", ")}${rest > 0 ? `, and ${rest} more` : ""}`;
}

function block(title: string, rows: readonly (readonly [string, string | null])[]): string {
  const lines = rows.flatMap(([label, text]) =>
    text === null ? [] : `      ${label.padEnd(7)}${text}`.trimEnd(),
  );
  return [`  ${title}`, ...lines, ""].join("\n");
}

function summary({ packets, habits, settings }: Report, remarks: readonly NodeRemark[]): string {
  if (remarks.some(({ kind }) => kind === "blocks")) return "The node cannot do this yet.";
  const lost = packets.filter(({ kind }) => kind === "lost").length;
  const changes = packets.length + habits.length + settings.length + remarks.length;
  if (changes === 0) return "Nothing changes.";
  return `${count(changes, "change")}; ${lost === 0 ? "no client that is served now loses access." : `${lost} of them ${lost === 1 ? "removes" : "remove"} access for some clients (-).`}`;
}

function count(number: number, what: string): string {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}
