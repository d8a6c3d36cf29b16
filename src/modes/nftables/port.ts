// One ServicePort's part of the table: elements that lead to shared pickers (chains that choose an endpoint), or chains
// of its own with session affinity or many endpoints.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { type Endpoint, portLabel, type ServicePort } from "../../model/snapshot.ts";
import { addressKey, type ElementKey, hairpinKey, nodePortKey } from "../../plan/nftables/key.ts";
import type {
  BackendSlots,
  Chain,
  Element,
  FilledSet,
  Fragment,
  NftSet,
  Verdict,
} from "../../plan/nftables/types.ts";
import { drop, goto } from "../../plan/nftables/verdict.ts";
import { isLocal } from "../../routing/pools.ts";
import type { Frontend, PortRoutes, Route } from "../../routing/routes.ts";
import { refusedOnLoopback, reject, rejectOnLocalhost } from "./foundation.ts";
import { isLarge, mostSharedSlots, ownPools } from "./large.ts";
import { countedSet, shortComment, slotMap } from "./names.ts";
import { picker } from "./pickers.ts";
import { sourceCheck } from "./sources.ts";
import { stickyChains, stickyName } from "./sticky.ts";

export function compilePort(routed: PortRoutes, settings: FamilySettings, limit = mostSharedSlots): Fragment {
  const { port } = routed;
  const fragment = new FragmentBuilder();
  fragment.element("cluster-ips", port.clusterIP);
  for (const endpoint of reachable(routed)) {
    if (!isLocal(endpoint, settings)) continue;
    fragment.element("hairpin-connections", hairpinKey(endpoint.address, port.protocol, endpoint.port));
  }
  const own = ownChains(routed, settings, limit);
  const compileRoute = own === null ? plainRoute : ownRoute;
  for (const route of routed.routes) {
    compileRoute(route, port, settings, fragment);
    refusal(route, port, fragment);
    firewall(route, settings, fragment);
    counted(route, settings, fragment);
    localhost(route, port, settings, fragment);
  }
  if (own !== null) fragment.own(own);
  return fragment.done();
}

/** What a ServicePort has for itself instead of elements of shared maps; null: most have nothing. */
function ownChains(routed: PortRoutes, settings: FamilySettings, limit: number): Own | null {
  if (routed.port.affinity !== null) return { ...stickyChains(routed, settings), spreads: nothing };
  return isLarge(routed, limit) ? ownPools(routed, settings) : null;
}

type Own = Pick<Fragment, "chains" | "sets" | "spreads" | "counters">;

const nothing: readonly never[] = [];

class FragmentBuilder {
  #shared: readonly Chain[] = nothing;
  #filled: readonly FilledSet[] = nothing;
  readonly #elements: (Element & { set: string })[] = [];
  readonly #spreads: (BackendSlots & { map: string })[] = [];
  #chains: readonly Chain[] = nothing;
  #sets: readonly NftSet[] = nothing;
  #counters: readonly string[] | undefined;

  element(set: string, key: ElementKey, data: Verdict | null = null, comment: string | null = null): void {
    this.#elements.push({ set, key, data, comment });
  }

  spread(map: string, key: ElementKey, endpoints: readonly Endpoint[]): void {
    this.#spreads.push({ map, key, backends: endpoints });
  }

  shared(chains: readonly Chain[]): void {
    this.#shared = this.#shared.length === 0 ? chains : [...new Set([...this.#shared, ...chains])];
  }

  filled(set: FilledSet): void {
    if (!this.#filled.includes(set)) this.#filled = [...this.#filled, set];
  }

  own({ chains, sets, spreads, counters }: Own): void {
    this.#chains = chains;
    this.#counters = counters;
    this.#sets = sets;
    this.#spreads.push(...spreads);
  }

  /** Copies the lists: an array that grew keeps unused capacity. */
  done(): Fragment {
    return {
      shared: this.#shared,
      filled: this.#filled,
      chains: this.#chains,
      sets: this.#sets,
      elements: this.#elements.slice(),
      spreads: this.#spreads.slice(),
      ...(this.#counters === undefined ? {} : { counters: this.#counters }),
    };
  }
}

/** Without affinity: the frontend's key leads to a picker for its number of endpoints, and to that many slots. */
function plainRoute(
  route: Route,
  port: ServicePort,
  settings: FamilySettings,
  fragment: FragmentBuilder,
): void {
  const { frontend, from } = route;
  const key = keyOf(frontend);
  const at = places[frontend.kind === "nodePort" ? "nodePort" : "address"];
  const all = from.node;
  if (all.kind === "forward") {
    const kind =
      frontend.kind === "clusterIP"
        ? "pick"
        : port.externalPolicy === "cluster"
          ? at.external
          : at.externalLocal;
    const { verdict, chains } = picker(kind, port.protocol, all.pool.endpoints.length, settings);
    fragment.shared(chains);
    fragment.element(at.verdicts, key, verdict);
    fragment.spread(slotMap(at.slots, settings.traffic), key, all.pool.endpoints);
  }
  const splits = frontend.kind !== "clusterIP" && port.externalPolicy === "local";
  if (splits && from.outside.kind === "forward") {
    const local = picker(at.pickLocal, port.protocol, from.outside.pool.endpoints.length, settings);
    fragment.shared(local.chains);
    fragment.element(at.localVerdicts, key, local.verdict);
    fragment.spread(slotMap(at.localSlots, settings.traffic), key, from.outside.pool.endpoints);
  }
}

const places = {
  address: {
    verdicts: "service-ips",
    slots: "endpoints",
    localVerdicts: "local-service-ips",
    localSlots: "local-endpoints",
    external: "external",
    externalLocal: "external-local",
    pickLocal: "pick-local",
  },
  nodePort: {
    verdicts: "service-nodeports",
    slots: "nodeport-endpoints",
    localVerdicts: "local-nodeports",
    localSlots: "local-nodeport-endpoints",
    external: "nodeport",
    externalLocal: "nodeport-local",
    pickLocal: "pick-nodeport-local",
  },
} as const;

/** With affinity, or many slots: the frontend's key leads to a chain of the ServicePort's own. */
function ownRoute(
  { frontend, from }: Route,
  port: ServicePort,
  _: FamilySettings,
  fragment: FragmentBuilder,
): void {
  if (from.node.kind !== "forward") return;
  const verdicts = places[frontend.kind === "nodePort" ? "nodePort" : "address"].verdicts;
  fragment.element(verdicts, keyOf(frontend), goto(stickyName(frontend, port)));
}

/** What cannot be forwarded for any sender is refused; where only outside senders are refused, both elements exist. */
function refusal({ frontend, from }: Route, port: ServicePort, fragment: FragmentBuilder): void {
  if (from.outside.kind === "forward") return;
  const set = frontend.kind === "nodePort" ? "no-endpoint-nodeports" : "no-endpoint-services";
  const verdict = from.outside.kind === "reject" ? reject : drop;
  fragment.element(set, keyOf(frontend), verdict, shortComment(portLabel(port)));
}

function firewall({ frontend, allowed }: Route, settings: FamilySettings, fragment: FragmentBuilder): void {
  if (allowed === null) return;
  const key = keyOf(frontend);
  const { verdict, chain, ranges } = sourceCheck(allowed, settings);
  fragment.shared([chain]);
  fragment.filled(ranges);
  fragment.element("firewall-ips", key, verdict);
}

/** Elements that count, for as long as the frontend exists. */
function counted({ frontend, allowed }: Route, { traffic }: FamilySettings, fragment: FragmentBuilder): void {
  if (traffic === "off") return;
  const key = keyOf(frontend);
  const isNodePort = frontend.kind === "nodePort";
  fragment.element(isNodePort ? countedSet.nodePorts : countedSet.ips, key);
  fragment.element(isNodePort ? countedSet.refusedNodePorts : countedSet.refusedIPs, key);
  if (allowed !== null) fragment.element(countedSet.outOfRange, key);
}

function localhost(
  { frontend }: Route,
  port: ServicePort,
  settings: FamilySettings,
  fragment: FragmentBuilder,
): void {
  if (frontend.kind !== "nodePort" || !refusedOnLoopback(settings).includes(port.protocol)) return;
  fragment.element("localhost-nodeport-reject-ports", keyOf(frontend), rejectOnLocalhost[port.protocol]);
}

function keyOf(frontend: Frontend): ElementKey {
  const { protocol, port } = frontend;
  return frontend.kind === "nodePort"
    ? nodePortKey(protocol, port)
    : addressKey(frontend.address, protocol, port);
}

/** Endpoints that some frontend forwards to. */
function reachable({ pools }: PortRoutes): Iterable<Endpoint> {
  if (pools.local.endpoints.length === 0) return pools.cluster.endpoints;
  return new Set([...pools.cluster.endpoints, ...pools.local.endpoints]);
}
