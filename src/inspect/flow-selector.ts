// Parses the argument of `turnout flows`, and resolves the names in it: Services by the Routes, pods by the API server.
import { parseTo, type To } from "../explain/question.ts";
import { type BothRoutes, questionOf } from "../explain/resolve.ts";
import { type Address, families, parseAddress } from "../model/address.ts";
import type { Protocol } from "../model/snapshot.ts";
import { SourceError } from "../sources/source.ts";
import type { FlowSelector } from "../traffic/selector.ts";
import { getFromApi, type Target } from "./target.ts";
import { UsageError } from "./usage-error.ts";

export const selectorExamples =
  "svc/shop/web, web:80, pod/shop/web-1, pod:10.0.1.5, 10.0.1.5:8080 (endpoint or Service address), :30080 (node port), :30053/udp";

export type SelectorText =
  | { readonly kind: "resolved"; readonly selector: FlowSelector }
  | { readonly kind: "pod"; readonly namespace: string | null; readonly name: string }
  | { readonly kind: "service"; readonly to: Extract<To, { kind: "service" }> };

/** Throws UsageError with an example. */
export function parseSelector(text: string, namespace: string | null): SelectorText {
  const [, port, protocol] = /^(?:nodeport)?:(\d{1,5})(?:\/(tcp|udp|sctp))?$/.exec(text) ?? [];
  if (port !== undefined) {
    const selector = nodePort(Number(port), (protocol ?? null) as Protocol | null);
    return { kind: "resolved", selector };
  }
  const address = parseAddress(text.replace(/^pod:/, "").replace(/^\[(.*)\]$/, "$1"));
  if (address !== null) return resolved({ kind: "addresses", addresses: new Set([address]) });
  const [, podNamespace, pod] =
    /^(?:po|pod|pods)[/:](?:([a-z0-9-]+)\/)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)$/.exec(text) ?? [];
  if (pod !== undefined) return { kind: "pod", namespace: podNamespace ?? namespace, name: pod };
  const to = parseTo(text);
  if (!to.ok) throw new UsageError(`cannot select flows by ${JSON.stringify(text)}; use ${selectorExamples}`);
  if (to.value.kind !== "service")
    return resolved(
      to.value.kind === "address"
        ? { kind: "place", address: to.value.address, port: to.value.port }
        : { kind: "nodePort", port: to.value.port, protocol: to.value.protocol },
    );
  return { kind: "service", to: { ...to.value, namespace: to.value.namespace ?? namespace } };
}

function nodePort(port: number, protocol: Protocol | null): FlowSelector {
  if (port < 1 || port > 65_535)
    throw new UsageError(`invalid node port ${port}: must be between 1 and 65535, for example :30080`);
  return { kind: "nodePort", port, protocol };
}

function resolved(selector: FlowSelector): SelectorText {
  return { kind: "resolved", selector };
}

export async function resolveSelector(
  text: SelectorText,
  routes: BothRoutes,
  target: Target,
  signal: AbortSignal,
): Promise<FlowSelector> {
  switch (text.kind) {
    case "resolved":
      return text.selector;
    case "service":
      return serviceSelector(text.to, routes);
    case "pod":
      return { kind: "addresses", addresses: await podAddresses(text, target, signal) };
  }
}

/** A Service with several ports is selected with all of them. */
function serviceSelector(to: Extract<To, { kind: "service" }>, routes: BothRoutes): FlowSelector {
  const ports = families
    .flatMap((family) => [...routes[family].servicePorts.values()])
    .filter(({ name, namespace }) => name === to.name && (to.namespace ?? namespace) === namespace);
  const [service, ...others] = new Set(ports.map((port) => port.service));
  const hasPort = ports.some(
    ({ port, portName, protocol }) =>
      (to.port === null || String(port) === to.port || portName === to.port) &&
      (to.protocol ?? protocol) === protocol,
  );
  if (service === undefined || others.length > 0 || !hasPort) {
    const question = questionOf({ kind: "node" }, to, routes);
    throw new UsageError(question.ok ? `cannot select flows of ${to.name}` : question.reason);
  }
  return { kind: "service", service, port: to.port, protocol: to.protocol };
}

type Pod = {
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
  readonly status?: { readonly podIP?: string; readonly podIPs?: readonly { readonly ip?: string }[] };
};

async function podAddresses(
  { namespace, name }: { readonly namespace: string | null; readonly name: string },
  target: Target,
  signal: AbortSignal,
): Promise<ReadonlySet<Address>> {
  const field = `fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
  const path = namespace === null ? "/api/v1/pods" : `/api/v1/namespaces/${namespace}/pods`;
  const list = await getFromApi(target, `${path}?${field}`, signal).catch((error: unknown) => {
    if (!(error instanceof SourceError)) throw error;
    throw new UsageError(
      `cannot look up pod ${name}: ${error.message}; use its address, for example pod:10.0.1.5`,
    );
  });
  if (list === null)
    throw new UsageError(
      `cannot look up pod ${name}: files contain no pod addresses; use its address, for example pod:10.0.1.5`,
    );
  // A server may ignore the selector.
  const found = ((list as { items?: Pod[] }).items ?? []).filter(({ metadata }) => metadata?.name === name);
  if (found.length > 1) {
    const names = found.map(({ metadata }) => `pod/${metadata?.namespace}/${name}`).join(" or ");
    throw new UsageError(`${found.length} pods are named ${name}; use ${names}`);
  }
  const addresses = addressesOf(found[0]);
  if (addresses.size === 0)
    throw new UsageError(
      `no running pod is named ${JSON.stringify(namespace === null ? name : `${namespace}/${name}`)}; for a pod that is gone use its address, for example pod:10.0.1.5`,
    );
  return addresses;
}

function addressesOf(pod: Pod | undefined): ReadonlySet<Address> {
  const { podIP, podIPs = [] } = pod?.status ?? {};
  const texts = [podIP, ...podIPs.map(({ ip }) => ip)];
  return new Set(texts.flatMap((text) => parseAddress(text ?? "") ?? []));
}
