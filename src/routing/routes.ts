// From a Snapshot to Routes: what happens at every Frontend to traffic from a pod, this node, or outside.
import type { FamilySettings } from "../config/resolve/settings.ts";
import { type Address, type Cidr, contains, hostCidr } from "../model/address.ts";
import { flatText } from "../model/flat-text.ts";
import { type Keyed, keyed } from "../model/keyed.ts";
import type { FamilySnapshot, PortKey, Protocol, ServicePort } from "../model/snapshot.ts";
import { choosePools, type Pool, type Pools } from "./pools.ts";

/** The sender: a pod of this node (as far as the detector can see), this node itself, or any other client. */
export type Sender = "pod" | "node" | "outside";

/** One place where traffic arrives. */
export type Frontend =
  | {
      readonly kind: "clusterIP";
      readonly address: Address;
      readonly protocol: Protocol;
      readonly port: number;
    }
  | {
      readonly kind: "loadBalancerIP";
      readonly address: Address;
      readonly protocol: Protocol;
      readonly port: number;
    }
  | {
      readonly kind: "externalIP";
      readonly address: Address;
      readonly protocol: Protocol;
      readonly port: number;
    }
  | { readonly kind: "nodePort"; readonly protocol: Protocol; readonly port: number };

/** `172.30.0.1/tcp/80`, or for a NodePort `node/tcp/30080`. */
export type FrontendId = string;

export type Target =
  | { readonly kind: "forward"; readonly pool: Pool; readonly masquerade: boolean }
  | { readonly kind: "reject" }
  | { readonly kind: "drop" };

/** What happens at one Frontend. */
export type Route = {
  readonly frontend: Frontend;
  readonly from: { readonly [sender in Sender]: Target };
  /** Sources that may use it; null: all. Others are dropped. */
  readonly allowed: readonly Cidr[] | null;
};

/** All Routes of one ServicePort. */
export type PortRoutes = {
  readonly port: ServicePort;
  readonly pools: Pools;
  readonly routes: readonly Route[];
  /** Frontends this ServicePort claims but another one holds. */
  readonly lost: readonly { readonly frontend: Frontend; readonly holder: PortKey }[];
};

/** All Routes of a family; immutable, shares what did not change with the Routes before. */
export type Routes = {
  readonly settings: FamilySettings;
  readonly serviceCIDRs: readonly Cidr[];
  /** Those of the Snapshot. */
  readonly servicePorts: Keyed<ServicePort>;
  /** Computed from the ServicePort whenever they are read: kept, they would take more memory than the Snapshot. */
  readonly ports: PortRoutesByKey;
  /** Frontends that a ServicePort claims but another one holds; hardly any has some. */
  readonly lost: Keyed<PortRoutes["lost"]>;
  /** Who claims each Frontend; `holderOf` returns who holds it. */
  readonly claims: Keyed<Claims>;
  /** Keys whose PortRoutes differ from the Routes before. */
  readonly changed: ReadonlySet<PortKey>;
};

export type PortRoutesByKey = Omit<Keyed<PortRoutes>, "with">;

/** The only ServicePort that claims a Frontend, or all that do, the holder first. */
export type Claims = PortKey | readonly Claim[];

type Claim = { readonly key: PortKey; readonly kind: Frontend["kind"] };

/** The ServicePort that holds a Frontend. */
export function holderOf({ claims }: Routes, id: FrontendId): PortKey | undefined {
  const found = claims.get(id);
  return typeof found === "object" ? found[0]!.key : found;
}

/** Whether a ServicePort has the same Routes in both, without computing them. */
export function hasSameRoutes(a: Routes, b: Routes, key: PortKey): boolean {
  return (
    a.settings === b.settings &&
    a.servicePorts.get(key) === b.servicePorts.get(key) &&
    a.lost.get(key) === b.lost.get(key)
  );
}

/**
 * Routes of a Snapshot. `before` must be the Routes of the Snapshot before: then only changed keys are visited;
 * without it, or when the settings differ, everything is.
 */
export function route(before: Routes | null, snapshot: FamilySnapshot, settings: FamilySettings): Routes {
  const known = before !== null && before.settings === settings ? before : null;
  const visited = known === null ? allKeys(before, snapshot) : snapshot.changed;
  const touched = stakeClaims(known, snapshot, visited, settings);
  const claims = (known?.claims ?? keyed<Claims>()).with(touched);
  const { dirty, contested } = settleClaims(known, touched, visited);
  const { ports: servicePorts, serviceCIDRs } = snapshot;
  const lost = (known?.lost ?? noneLost).with(
    lostChanges(known, dirty, contested, servicePorts, claims, settings),
  );
  const isSame = known?.servicePorts === servicePorts && known.lost === lost;
  const ports = isSame ? known.ports : new ComputedRoutes(servicePorts, lost, settings);
  return { settings, serviceCIDRs, servicePorts, ports, lost, claims, changed: dirty };
}

const noneLost = keyed<PortRoutes["lost"]>();

/** What each ServicePort that was routed again has lost now; undefined: nothing. */
function* lostChanges(
  known: Routes | null,
  dirty: ReadonlySet<PortKey>,
  contested: ReadonlySet<PortKey>,
  ports: Keyed<ServicePort>,
  claims: Keyed<Claims>,
  settings: FamilySettings,
): Generator<[PortKey, PortRoutes["lost"] | undefined]> {
  if (contested.size === 0 && (known?.lost.size ?? 0) === 0) return;
  for (const key of dirty) {
    const port = contested.has(key) ? ports.get(key) : undefined;
    yield [key, port === undefined ? undefined : lostBy(port, claims, settings)];
  }
}

class ComputedRoutes implements PortRoutesByKey {
  readonly #ports: Keyed<ServicePort>;
  readonly #lost: Routes["lost"];
  readonly #settings: FamilySettings;
  /** Callers often read those of one ServicePort many times: for each of its endpoints or addresses. */
  #latest: PortRoutes | null = null;

  constructor(ports: Keyed<ServicePort>, lost: Routes["lost"], settings: FamilySettings) {
    this.#ports = ports;
    this.#lost = lost;
    this.#settings = settings;
  }

  get size(): number {
    return this.#ports.size;
  }

  get(key: PortKey): PortRoutes | undefined {
    if (this.#latest?.port.key === key) return this.#latest;
    const port = this.#ports.get(key);
    if (port === undefined) return undefined;
    this.#latest = this.#routed(port);
    return this.#latest;
  }

  has(key: PortKey): boolean {
    return this.#ports.has(key);
  }

  keys(): IterableIterator<PortKey> {
    return this.#ports.keys();
  }

  *values(): IterableIterator<PortRoutes> {
    for (const port of this.#ports.values()) yield this.#routed(port);
  }

  *entries(): IterableIterator<[PortKey, PortRoutes]> {
    for (const [key, port] of this.#ports.entries()) yield [key, this.#routed(port)];
  }

  #routed(port: ServicePort): PortRoutes {
    return routePort(port, this.#settings, this.#lost.get(port.key) ?? nothingLost);
  }
}

/** Every Frontend a ServicePort claims; an address that is both external and a load balancer's counts once. */
export function frontendsOf(port: ServicePort, settings: FamilySettings): readonly Frontend[] {
  const { protocol } = port;
  const wanted: Frontend[] = [{ kind: "clusterIP", address: port.clusterIP, protocol, port: port.port }];
  for (const address of port.loadBalancerIPs)
    wanted.push({ kind: "loadBalancerIP", address, protocol, port: port.port });
  for (const address of settings.externalIPsAllowed ? port.externalIPs : []) {
    wanted.push({ kind: "externalIP", address, protocol, port: port.port });
  }
  if (port.nodePort !== 0) wanted.push({ kind: "nodePort", protocol, port: port.nodePort });
  if (wanted.length === 1) return wanted;
  const byId = new Map<FrontendId, Frontend>();
  for (const frontend of wanted.reverse()) byId.set(frontendId(frontend), frontend);
  return [...byId.values()].reverse();
}

export function frontendId(frontend: Frontend): FrontendId {
  const place = frontend.kind === "nodePort" ? "node" : frontend.address;
  return flatText("/", place, frontend.protocol, frontend.port);
}

function routePort(port: ServicePort, settings: FamilySettings, lost: PortRoutes["lost"]): PortRoutes {
  const pools = choosePools(port, settings);
  const claimed = frontendsOf(port, settings);
  const taken = new Set(lost.map(({ frontend }) => frontendId(frontend)));
  const held = lost.length === 0 ? claimed : claimed.filter((frontend) => !taken.has(frontendId(frontend)));
  return {
    port,
    pools,
    routes: held.map((frontend) => routeFrontend(frontend, port, pools, settings)),
    lost,
  };
}

const nothingLost: PortRoutes["lost"] = [];

function lostBy(
  port: ServicePort,
  claims: Keyed<Claims>,
  settings: FamilySettings,
): PortRoutes["lost"] | undefined {
  const lost = frontendsOf(port, settings).flatMap((frontend) => {
    const all = claims.get(frontendId(frontend))!;
    return typeof all === "string" || all[0]!.key === port.key ? [] : [{ frontend, holder: all[0]!.key }];
  });
  return lost.length === 0 ? undefined : lost;
}

function routeFrontend(frontend: Frontend, port: ServicePort, pools: Pools, settings: FamilySettings): Route {
  switch (frontend.kind) {
    case "clusterIP":
      return { frontend, from: internalTargets(port, pools, settings), allowed: null };
    case "loadBalancerIP":
      return {
        frontend,
        from: externalTargets(port, pools, settings),
        allowed: allowedSources(port, settings),
      };
    case "externalIP":
    case "nodePort":
      return { frontend, from: externalTargets(port, pools, settings), allowed: null };
  }
}

/** Cluster IP: the internal policy picks the pool; every sender that is not a known pod is masqueraded. */
function internalTargets(port: ServicePort, pools: Pools, settings: FamilySettings): Route["from"] {
  const pool = port.internalPolicy === "local" ? pools.local : pools.cluster;
  const detects = settings.detector.kind !== "none";
  const others = targetOf(pool, pools, settings.masqueradeAll || detects);
  return { pod: targetOf(pool, pools, settings.masqueradeAll), node: others, outside: others };
}

/** From outside the external policy rules; pods of this node and the node itself reach the whole cluster. */
function externalTargets(port: ServicePort, pools: Pools, settings: FamilySettings): Route["from"] {
  if (port.externalPolicy === "cluster") {
    const target = targetOf(pools.cluster, pools, true);
    return { pod: target, node: target, outside: target };
  }
  const here = targetOf(pools.local, pools, false);
  const detects = settings.detector.kind !== "none";
  return {
    pod: detects ? targetOf(pools.cluster, pools, false) : here,
    node: targetOf(pools.cluster, pools, true),
    outside: here,
  };
}

function targetOf(pool: Pool, { anyUsable }: Pools, masquerade: boolean): Target {
  if (pool.endpoints.length > 0) return { kind: "forward", pool, masquerade };
  return anyUsable ? { kind: "drop" } : { kind: "reject" };
}

/** A node inside a range reaches a load-balancer address that it holds itself from that very address. */
function allowedSources(
  { sourceRanges, loadBalancerIPs }: ServicePort,
  { nodeIP }: FamilySettings,
): readonly Cidr[] | null {
  if (sourceRanges.length === 0) return null;
  const known = allowedBy.get(sourceRanges);
  if (known?.nodeIP === nodeIP && known.loadBalancerIPs === loadBalancerIPs) return known.allowed;
  const nodeAllowed = sourceRanges.some((range) => contains(range, nodeIP));
  const allowed = nodeAllowed ? [...sourceRanges, ...loadBalancerIPs.map(hostCidr)] : sourceRanges;
  allowedBy.set(sourceRanges, { nodeIP, loadBalancerIPs, allowed });
  return allowed;
}

/** All ports and addresses of a Service share one list of ranges, and so one list of allowed sources. */
const allowedBy = new WeakMap<
  readonly Cidr[],
  {
    readonly nodeIP: Address;
    readonly loadBalancerIPs: readonly Address[];
    readonly allowed: readonly Cidr[];
  }
>();

function allKeys(before: Routes | null, snapshot: FamilySnapshot): ReadonlySet<PortKey> {
  const keys = new Set(before?.servicePorts.keys());
  for (const key of snapshot.ports.keys()) keys.add(key);
  return keys;
}

/** The claims on every Frontend that the visited ServicePorts claim or no longer claim; undefined: no claim is left. */
function stakeClaims(
  before: Routes | null,
  snapshot: FamilySnapshot,
  visited: ReadonlySet<PortKey>,
  settings: FamilySettings,
): ReadonlyMap<FrontendId, Claims | undefined> {
  const touched = new Map<FrontendId, PortKey | Claim[] | undefined>();
  const kindAt = kindsOf(snapshot.ports, settings);
  // Copied once for each Frontend, without those visited, whose claims follow: thousands may claim the same one.
  const claimsOf = (id: FrontendId) =>
    touched.has(id) ? touched.get(id) : unvisited(before?.claims.get(id), visited);
  for (const key of visited) {
    const old = before?.servicePorts.get(key);
    for (const frontend of old === undefined ? noFrontends : frontendsOf(old, settings)) {
      const id = frontendId(frontend);
      touched.set(id, claimsOf(id));
    }
    const now = snapshot.ports.get(key);
    for (const frontend of now === undefined ? noFrontends : frontendsOf(now, settings)) {
      const id = frontendId(frontend);
      const others = claimsOf(id);
      if (others === undefined) touched.set(id, key);
      else
        touched.set(
          id,
          withClaim(others, { key, kind: frontend.kind }, (other) => kindAt(other, id)),
        );
    }
  }
  for (const claims of touched.values()) if (typeof claims === "object") claims.sort(byRightToHold);
  return touched;
}

/** The kind of a Frontend, by the ServicePort that claims it: two may claim thousands of the same. */
function kindsOf(
  ports: Keyed<ServicePort>,
  settings: FamilySettings,
): (key: PortKey, id: FrontendId) => Frontend["kind"] {
  const known = new Map<PortKey, ReadonlyMap<FrontendId, Frontend["kind"]>>();
  return (key, id) => {
    let kinds = known.get(key);
    if (kinds === undefined) {
      const frontends = frontendsOf(ports.get(key)!, settings);
      kinds = new Map(frontends.map((frontend) => [frontendId(frontend), frontend.kind]));
      known.set(key, kinds);
    }
    return kinds.get(id)!;
  };
}

function unvisited(claims: Claims | undefined, visited: ReadonlySet<PortKey>): PortKey | Claim[] | undefined {
  if (typeof claims !== "object") return claims === undefined || visited.has(claims) ? undefined : claims;
  const left = claims.filter(({ key }) => !visited.has(key));
  return left.length > 1 ? left : left[0]?.key;
}

/** Adds to the list of others, if it is one. */
function withClaim(
  others: PortKey | Claim[],
  claim: Claim,
  kindOf: (key: PortKey) => Frontend["kind"],
): Claim[] {
  if (typeof others === "string") return [{ key: others, kind: kindOf(others) }, claim];
  others.push(claim);
  return others;
}

const noFrontends: readonly Frontend[] = [];

/** A ServicePort whose Frontend changes hands must be routed again as well. Contested: all that may have lost one. */
function settleClaims(
  before: Routes | null,
  touched: ReadonlyMap<FrontendId, Claims | undefined>,
  visited: ReadonlySet<PortKey>,
): { dirty: ReadonlySet<PortKey>; contested: ReadonlySet<PortKey> } {
  const affected = new Set<PortKey>();
  const contested = new Set<PortKey>();
  for (const [id, claims] of touched) {
    if (claims === undefined || (typeof claims === "string" && visited.has(claims))) continue;
    const keys = typeof claims === "string" ? [claims] : claims.map(({ key }) => key);
    const isHandedOver = before === null || holderOf(before, id) !== keys[0];
    for (const key of keys) {
      contested.add(key);
      if (isHandedOver) affected.add(key);
    }
  }
  return { dirty: affected.size === 0 ? visited : new Set([...visited, ...affected]), contested };
}

/** A cluster IP cannot be taken over by another Service's external IP; among equals the key decides, not the arrival. */
function byRightToHold(a: Claim, b: Claim): number {
  return rank[a.kind] - rank[b.kind] || (a.key < b.key ? -1 : 1);
}

const rank = { clusterIP: 0, nodePort: 0, loadBalancerIP: 1, externalIP: 2 } as const satisfies Record<
  Frontend["kind"],
  number
>;
