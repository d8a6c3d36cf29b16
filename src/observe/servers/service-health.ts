// One small server for each Service with a health check node port, in one family.
import type { NodePortAddresses } from "../../config/resolve/settings.ts";
import { type Address, contains, type Family } from "../../model/address.ts";
import type { ServiceName } from "../../model/snapshot.ts";
import { serviceAnswer } from "../health-answers.ts";
import type { CheckedService } from "../local-endpoints.ts";
import { type HttpServer, listen } from "./http.ts";

export type ServiceHealthWorld = {
  readonly family: Family;
  /** Where to listen now; see `healthCheckAddresses`. */
  readonly addresses: () => readonly Address[];
  /** Health of the proxy, without regard to the node's eligibility. */
  readonly healthy: () => boolean;
  /** The port could not be opened; it is tried again at the next `update`. */
  readonly onFailure: (service: ServiceName, port: number, error: Error) => void;
  readonly onDisplaced: () => void;
};

export type ServiceHealth = {
  /** Opens and closes servers so that exactly these are served, then updates their counts. */
  readonly update: (services: readonly CheckedService[]) => Promise<void>;
  readonly close: () => Promise<void>;
};

type Open = {
  readonly port: number;
  readonly addresses: string;
  readonly servers: readonly HttpServer[];
  count: number;
};

const connectionLimit = 128;

export function openServiceHealth(world: ServiceHealthWorld): ServiceHealth {
  const open = new Map<ServiceName, Open>();
  // Updates run one after another: two must never open the same port.
  let last: Promise<void> = Promise.resolve();

  async function reconcile(wanted: readonly CheckedService[]): Promise<void> {
    const ports = new Map(wanted.map((one) => [one.service, one.port]));
    const addresses = world.addresses().join();
    const stale = [...open].filter(
      ([service, one]) => ports.get(service) !== one.port || one.addresses !== addresses,
    );
    await Promise.all(stale.map(([service, one]) => closeOne(service, one)));
    for (const { service, port } of wanted) if (!open.has(service)) await openOne(service, port);
    for (const { service, localEndpoints } of wanted) {
      const one = open.get(service);
      if (one !== undefined) one.count = localEndpoints;
    }
  }

  async function closeOne(service: ServiceName, one: Open): Promise<void> {
    open.delete(service);
    await Promise.all(one.servers.map((server) => server.close()));
  }

  async function openOne(service: ServiceName, port: number): Promise<void> {
    const servers: HttpServer[] = [];
    const addresses = world.addresses();
    const one: Open = { port, addresses: addresses.join(), servers, count: 0 };
    const [namespace = "", name = ""] = service.split("/");
    const respond = () => serviceAnswer(namespace, name, one.count, world.healthy());
    const limits = { connections: connectionLimit, onDisplaced: world.onDisplaced };
    try {
      for (const host of addresses)
        servers.push(await listen({ host, port, families: "own" }, respond, limits));
      open.set(service, one);
    } catch (error) {
      await Promise.all(servers.map((server) => server.close()));
      world.onFailure(service, port, error instanceof Error ? error : new Error("unknown", { cause: error }));
    }
  }

  return {
    update(services) {
      last = last.then(() => reconcile(services));
      return last;
    },
    async close() {
      await last;
      await Promise.all([...open].map(([service, one]) => closeOne(service, one)));
    },
  };
}

const wildcard = { ipv4: "0.0.0.0", ipv6: "::" } as const satisfies Record<Family, Address>;

/** The wildcard, or those of this node's addresses that NodePorts answer on; possibly none. */
export function healthCheckAddresses(
  family: Family,
  nodePorts: NodePortAddresses,
  localAddresses: readonly Address[],
): readonly Address[] {
  if (nodePorts.kind === "all") return [wildcard[family]];
  return localAddresses.filter((address) => nodePorts.cidrs.some((cidr) => contains(cidr, address)));
}
