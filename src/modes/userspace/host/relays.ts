// The relays of one family in userspace mode: opened before rules lead to them, closed after the rules are gone.
import { HostError } from "../../../host/error.ts";
import { Balancer, type RelayBackend } from "../../../host/relay/balancer.ts";
import type { FdBudget } from "../../../host/relay/fd-budget.ts";
import { listeningPorts } from "../../../host/relay/listening.ts";
import { type PortReservation, reservePort } from "../../../host/relay/port-reservation.ts";
import type { RelayPorts } from "../../../host/relay/ports.ts";
import type { Relay, RelayOptions } from "../../../host/relay/relay.ts";
import { openTcpRelay } from "../../../host/relay/tcp.ts";
import { openUdpRelay } from "../../../host/relay/udp.ts";
import type { Address, Family } from "../../../model/address.ts";
import type { Problem } from "../../../model/problem.ts";
import { endpointKey, type PortKey, type Protocol } from "../../../model/snapshot.ts";
import {
  type Frontend,
  type FrontendId,
  frontendId,
  holderOf,
  type PortRoutes,
  type Routes,
} from "../../../routing/routes.ts";
import type { PortCounts } from "../../driver.ts";
import type { Sockets } from "../compile.ts";
import {
  type Guard,
  guardOf,
  type PoolName,
  policiesOf,
  poolFor,
  type RelayPolicy,
} from "../relay-policy.ts";
import { needsReservation, type OpenRelays, type RelayedPort } from "../relays.ts";

export type RelaysOptions = {
  readonly family: Family;
  /** null: every address. */
  readonly bind: Address | null;
  readonly ports: RelayPorts;
  readonly room: FdBudget;
  readonly udpIdleMs: number;
  /** Milliseconds that never go back. */
  readonly now: () => number;
  readonly random: () => number;
  /** TCP ports that are listened on here, null where that is unknown; read from the kernel by default. */
  readonly listening?: () => ReadonlySet<number> | null;
};

/** The relays of one ServicePort. */
type Served = {
  routed: PortRoutes;
  guard: Guard;
  settings: Routes["settings"];
  readonly balancers: Readonly<Record<PoolName, Balancer>>;
  readonly relays: Map<RelayPolicy, Relay>;
  /** Frontends whose place was held for it, now or before. */
  readonly held: Set<FrontendId>;
  readonly counts: RelayCounts;
};

/** Connections, and clients of UDP, since the ServicePort is served. */
type RelayCounts = {
  connections: number;
  /** Those that were turned away, whatever the reason. */
  failed: number;
  outOfRange: number;
  readonly endpoints: Map<string, number>;
};

/** A relay that is open now and was not, or the other way round. */
export type RelayChange = { readonly protocol: Protocol; readonly port: number };

/** Attempts as of old: four, each with more patience, each with the next endpoint. */
const dialMs = [250, 500, 1000, 2000];

/** Connections, or UDP clients, of one relay at the same time. */
const clientLimit = 16_384;

const everywhere = { ipv4: "0.0.0.0", ipv6: "::" } as const satisfies Record<Family, Address>;

export class Relays {
  readonly #options: RelaysOptions;
  readonly #served = new Map<PortKey, Served>();
  readonly #holds = new Map<FrontendId, PortReservation>();
  /** Why something could not be opened; by ServicePort. */
  readonly #failures = new Map<PortKey, readonly string[]>();
  readonly #taken = new Set<FrontendId>();
  /** Relays that no longer listen, but still carry connections. */
  readonly #drainingRelays = new Set<Relay>();

  constructor(options: RelaysOptions) {
    this.#options = options;
  }

  /** ServicePorts with something that could not be opened. */
  get unfinished(): readonly PortKey[] {
    return [...this.#failures.keys()];
  }

  readonly socketsOf = (key: PortKey): Sockets => {
    const relays = this.#served.get(key)?.relays ?? new Map<RelayPolicy, Relay>();
    return {
      relayPorts: new Map([...relays].map(([policy, { port }]) => [policy, port])),
      taken: this.#taken,
    };
  };

  /** The relays that are open now. */
  state(): OpenRelays {
    const ports = [...this.#served].map(([key, { routed, guard, relays, balancers }]): RelayedPort => {
      const poolOf = ({ backends }: Balancer) => backends.map(({ address, port }) => ({ address, port }));
      return {
        key,
        protocol: routed.port.protocol,
        doors: Object.fromEntries([...relays].map(([policy, { port }]) => [policy, port])),
        guard,
        pools: { cluster: poolOf(balancers.cluster), local: poolOf(balancers.local) },
      };
    });
    return { ports, held: [...this.#holds.keys()], taken: [...this.#taken] };
  }

  /** What the relays have forwarded and turned away. */
  counts(endpoints: boolean): ReadonlyMap<PortKey, PortCounts> {
    return new Map(
      [...this.#served].map(([key, { counts, balancers }]) => {
        const { connections, failed, outOfRange } = counts;
        const current = Object.values(balancers).flatMap(({ backends }) => backends.map(endpointKey));
        const each = current.map((endpoint) => [endpoint, counts.endpoints.get(endpoint) ?? 0] as const);
        // A client outside the source ranges is turned away too.
        const refused = failed - outOfRange;
        return [key, { connections, refused, outOfRange, endpoints: endpoints ? new Map(each) : null }];
      }),
    );
  }

  /** Opens what these ServicePorts lack, and lets their relays choose by the new Routes. Nothing is closed. */
  async grow(routes: Routes, keys: Iterable<PortKey>): Promise<readonly RelayChange[]> {
    const opened: RelayChange[] = [];
    for (const key of keys) {
      this.#failures.delete(key);
      const routed = routes.ports.get(key);
      if (routed === undefined || routed.port.protocol === "sctp") continue;
      const served = this.#serve(routed, routes.settings);
      const failures = [...(await this.#openRelays(served, opened)), ...(await this.#holdPlaces(served))];
      if (failures.length > 0) this.#failures.set(key, failures);
    }
    return opened;
  }

  /** Closes what these ServicePorts no longer need. */
  async shrink(routes: Routes, keys: Iterable<PortKey>): Promise<readonly RelayChange[]> {
    const closed: RelayChange[] = [];
    for (const key of keys) {
      const served = this.#served.get(key);
      if (served === undefined) continue;
      const routed = routes.ports.get(key);
      const needed = routed === undefined ? new Set<RelayPolicy>() : policiesOf(routed);
      for (const [policy, relay] of served.relays) {
        if (!needed.has(policy)) closed.push(await this.#closeRelay(served, policy, relay));
      }
      await this.#releasePlaces(served, routes);
      if (routed === undefined) this.#served.delete(key);
    }
    return closed;
  }

  /** Closes relays whose listener another process aborted, so that they are opened again with the next Sync of these ServicePorts. */
  async closeLostRelays(): Promise<{
    readonly keys: ReadonlySet<PortKey>;
    readonly closed: readonly RelayChange[];
  }> {
    const keys = new Set<PortKey>();
    const closed: RelayChange[] = [];
    const { family, listening = () => listeningPorts(family) } = this.#options;
    const tcp = listening();
    if (tcp === null) return { keys, closed };
    for (const [key, served] of this.#served) {
      for (const [policy, relay] of served.relays) {
        if (!relay.hasLostListener(tcp)) continue;
        keys.add(key);
        closed.push(await this.#closeRelay(served, policy, relay));
      }
      for (const id of served.held) {
        if (this.#holds.get(id)?.isLost(tcp) !== true) continue;
        keys.add(key);
        await this.#releasePort(id);
      }
    }
    return { keys, closed };
  }

  /** What could not be opened, as Problems of the Services. */
  problems(): Problem[] {
    return [...this.#failures].flatMap(([key, failures]) =>
      failures.map((message): Problem => {
        const object = `Service ${key.split("/").slice(0, 2).join("/")}`;
        return { kind: "refused", object, field: "", message };
      }),
    );
  }

  /** Ends everything, open connections too. */
  async close(): Promise<void> {
    for (const { relays } of this.#served.values()) {
      await Promise.all([...relays.values()].map((relay) => relay.close(true)));
    }
    await Promise.all([...this.#drainingRelays].map((relay) => relay.close(true)));
    await Promise.all([...this.#holds.values()].map(({ release }) => release()));
    this.#served.clear();
    this.#holds.clear();
    this.#drainingRelays.clear();
  }

  #serve(routed: PortRoutes, settings: Routes["settings"]): Served {
    const { port, pools } = routed;
    const served = this.#served.get(port.key) ?? this.#newlyServed(routed, settings);
    served.routed = routed;
    served.guard = guardOf(routed);
    served.settings = settings;
    const affinity = port.affinity?.seconds ?? null;
    const known = new Set(port.endpoints.map(endpointKey));
    for (const endpoint of served.counts.endpoints.keys())
      if (!known.has(endpoint)) served.counts.endpoints.delete(endpoint);
    served.balancers.cluster.set(pools.cluster.endpoints, affinity);
    served.balancers.local.set(pools.local.endpoints, affinity);
    const serving = new Set(port.endpoints.filter((endpoint) => endpoint.serving).map(endpointKey));
    for (const relay of served.relays.values()) relay.retain((backend) => serving.has(endpointKey(backend)));
    return served;
  }

  #newlyServed(routed: PortRoutes, settings: Routes["settings"]): Served {
    const { random, now } = this.#options;
    const balancer = () => new Balancer({ order: "turn", random, now });
    const balancers = { cluster: balancer(), local: balancer() };
    const guard = guardOf(routed);
    const served: Served = {
      routed,
      guard,
      settings,
      balancers,
      relays: new Map(),
      held: new Set(),
      counts: noCounts(),
    };
    this.#served.set(routed.port.key, served);
    return served;
  }

  async #openRelays(served: Served, opened: RelayChange[]): Promise<string[]> {
    const failures: string[] = [];
    for (const policy of policiesOf(served.routed)) {
      if (served.relays.has(policy)) continue;
      try {
        const relay = await this.#options.ports.open((port) => this.#openRelay(policy, served, port));
        served.relays.set(policy, relay);
        this.#options.room.take(1);
        opened.push({ protocol: served.routed.port.protocol, port: relay.port });
      } catch (error) {
        failures.push(messageOf(error));
      }
    }
    return failures;
  }

  #openRelay(policy: RelayPolicy, served: Served, port: number): Promise<Relay> {
    const { bind, family, room, udpIdleMs } = this.#options;
    const options: RelayOptions = {
      host: bind ?? everywhere[family],
      port,
      limit: clientLimit,
      room,
      choose: (client, attempt) => {
        // A link-local address comes with its interface.
        const address = client.split("%")[0]!;
        const pool = poolFor(policy, address, served.guard, served.settings);
        if (pool !== null) return served.balancers[pool].choose(address, attempt > 0);
        served.counts.outOfRange++;
        return null;
      },
      onOutcome: (_, to) => count(served.counts, to),
    };
    return served.routed.port.protocol === "tcp"
      ? openTcpRelay({ ...options, dialMs })
      : openUdpRelay({ ...options, idleMs: udpIdleMs });
  }

  /** Established TCP connections go on; UDP has no end to wait for. */
  async #closeRelay({ routed, relays }: Served, policy: RelayPolicy, relay: Relay): Promise<RelayChange> {
    const { protocol } = routed.port;
    relays.delete(policy);
    await relay.close(protocol === "udp");
    this.#options.ports.release(relay.port);
    this.#options.room.give(1);
    for (const earlier of this.#drainingRelays)
      if (earlier.open() === 0) this.#drainingRelays.delete(earlier);
    if (relay.open() > 0) this.#drainingRelays.add(relay);
    return { protocol, port: relay.port };
  }

  async #holdPlaces({ routed, settings, held }: Served): Promise<string[]> {
    const failures: string[] = [];
    const { protocol } = routed.port;
    if (protocol === "sctp") return failures;
    for (const { frontend } of routed.routes) {
      const id = frontendId(frontend);
      const host = this.#placeOf(frontend, settings);
      if (host === null) continue;
      held.add(id);
      this.#taken.delete(id);
      if (this.#holds.has(id)) continue;
      try {
        this.#holds.set(id, await reservePort(protocol, host, frontend.port));
        this.#options.room.take(1);
      } catch (error) {
        this.#taken.add(id);
        failures.push(messageOf(error));
      }
    }
    return failures;
  }

  #placeOf(frontend: Frontend, settings: Routes["settings"]): Address | null {
    if (!needsReservation(frontend, settings)) return null;
    return frontend.kind === "nodePort" ? everywhere[this.#options.family] : frontend.address;
  }

  /** A place that went from one ServicePort to another is never let go. */
  async #releasePlaces({ held }: Served, routes: Routes): Promise<void> {
    for (const id of held) {
      const holder = routes.ports.get(holderOf(routes, id) ?? "");
      const route = holder?.routes.find(({ frontend }) => frontendId(frontend) === id);
      if (route !== undefined && this.#placeOf(route.frontend, routes.settings) !== null) continue;
      held.delete(id);
      this.#taken.delete(id);
      await this.#releasePort(id);
    }
  }

  async #releasePort(id: FrontendId): Promise<void> {
    const place = this.#holds.get(id);
    if (place === undefined) return;
    this.#holds.delete(id);
    await place.release();
    this.#options.room.give(1);
  }
}

function noCounts(): RelayCounts {
  return { connections: 0, failed: 0, outOfRange: 0, endpoints: new Map() };
}

function count(counts: RelayCounts, to: RelayBackend | null): void {
  if (to === null) {
    counts.failed++;
    return;
  }
  const endpoint = endpointKey(to);
  counts.connections++;
  counts.endpoints.set(endpoint, (counts.endpoints.get(endpoint) ?? 0) + 1);
}

function messageOf(error: unknown): string {
  if (!(error instanceof HostError)) throw error;
  return error.message;
}
