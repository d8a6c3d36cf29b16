// The table of Services: rows are computed again only for Services that changed, and stay sorted, the troubled first.
import type { Family } from "../model/address.ts";
import type { Problem } from "../model/problem.ts";
import type { PortKey, ServiceName } from "../model/snapshot.ts";
import type { PortRoutes } from "../routing/routes.ts";
import type { Level, ServiceRow, ServiceType, ServiceWindow } from "./json.ts";
import { compare, levels, rowOf } from "./row.ts";

export type ServiceFilter = {
  /** null: every one. */
  readonly namespace: string | null;
  readonly type: ServiceType | null;
  readonly level: Level | null;
  /** Part of a name or an address; empty: every one. */
  readonly text: string;
};

export const everything: ServiceFilter = { namespace: null, type: null, level: null, text: "" };

type Ports = Map<string, PortRoutes>;

export class ServiceTable {
  readonly #ports = new Map<ServiceName, Ports>();
  readonly #rows = new Map<ServiceName, ServiceRow>();
  #sorted: ServiceRow[] = [];
  readonly #dirty = new Set<ServiceName>();
  #problems: ReadonlyMap<ServiceName, readonly Problem[]> = new Map();
  /** Changes with every row that changes. */
  revision = 0;
  /** Endpoints of all ServicePorts. */
  endpoints = 0;

  get size(): number {
    return this.#rows.size;
  }

  /** `undefined`: the ServicePort is gone. Rows follow with `settle`. */
  set(family: Family, key: PortKey, routed: PortRoutes | undefined): void {
    const service = serviceOf(key);
    const ports = this.#ports.get(service) ?? new Map<string, PortRoutes>();
    const id = `${family} ${key}`;
    const before = ports.get(id);
    if (before === routed) return;
    this.endpoints += (routed?.port.endpoints.length ?? 0) - (before?.port.endpoints.length ?? 0);
    if (routed === undefined) ports.delete(id);
    else ports.set(id, routed);
    if (ports.size === 0) this.#ports.delete(service);
    else this.#ports.set(service, ports);
    this.#dirty.add(service);
  }

  setProblems(problems: readonly Problem[]): void {
    const now = byService(problems);
    for (const service of new Set([...now.keys(), ...this.#problems.keys()]))
      if (!sameProblems(now.get(service), this.#problems.get(service))) this.#dirty.add(service);
    this.#problems = now;
  }

  /** Yields after each few Services, so that other work can go in between. */
  *settle(sliceOf = 200): Generator<void> {
    if (this.#dirty.size === 0) return;
    const changed: (readonly [ServiceRow | undefined, ServiceRow | undefined])[] = [];
    for (const service of this.#dirty) {
      // It may change again before the next slice.
      this.#dirty.delete(service);
      const before = this.#rows.get(service);
      const after = this.#rowOf(service);
      if (after === undefined) this.#rows.delete(service);
      else this.#rows.set(service, after);
      if (changed.push([before, after]) % sliceOf === 0) yield;
    }
    if (changed.length > 500) this.#sorted = [...this.#rows.values()].sort(compareRows);
    else for (const [before, after] of changed) this.#move(before, after);
    this.revision++;
  }

  row(service: ServiceName): ServiceRow | undefined {
    return this.#rows.get(service);
  }

  portsOf(service: ServiceName): readonly PortRoutes[] {
    return [...(this.#ports.get(service)?.values() ?? [])];
  }

  problemsOf(service: ServiceName): readonly Problem[] {
    return this.#problems.get(service) ?? [];
  }

  view(filter: ServiceFilter, offset: number, limit: number): ServiceWindow {
    const counts = {
      levels: { trouble: 0, warning: 0, ok: 0 },
      types: { ClusterIP: 0, NodePort: 0, LoadBalancer: 0 },
      namespaces: new Map<string, number>(),
    };
    const rows: ServiceRow[] = [];
    let matched = 0;
    for (const row of this.#sorted) {
      const namespace = namespaceOf(row.service);
      counts.namespaces.set(namespace, (counts.namespaces.get(namespace) ?? 0) + 1);
      if (filter.namespace !== null && namespace !== filter.namespace) continue;
      if (!this.#contains(row, filter.text)) continue;
      const isType = filter.type === null || row.type === filter.type;
      const isLevel = filter.level === null || row.level === filter.level;
      if (isType) counts.levels[row.level]++;
      if (isLevel) counts.types[row.type]++;
      if (!isType || !isLevel) continue;
      if (matched >= offset && rows.length < limit) rows.push(row);
      matched++;
    }
    const namespaces = [...counts.namespaces].sort(([a], [b]) => compare(a, b));
    return { revision: this.revision, total: this.size, matched, offset, rows, ...counts, namespaces };
  }

  #contains(row: ServiceRow, text: string): boolean {
    if (text === "") return true;
    if (row.service.includes(text) || row.frontends.some((place) => place.includes(text))) return true;
    if (!/[.:]/.test(text)) return false;
    for (const { port } of this.#ports.get(row.service)?.values() ?? [])
      for (const { address } of port.endpoints) if (address.startsWith(text)) return true;
    return false;
  }

  #rowOf(service: ServiceName): ServiceRow | undefined {
    const ports = this.#ports.get(service);
    return ports === undefined ? undefined : rowOf([...ports.values()], this.problemsOf(service));
  }

  #move(before: ServiceRow | undefined, after: ServiceRow | undefined): void {
    if (before !== undefined) this.#sorted.splice(this.#indexOf(before), 1);
    if (after !== undefined) this.#sorted.splice(this.#indexOf(after), 0, after);
  }

  /** Where this row is, or belongs. */
  #indexOf(row: ServiceRow): number {
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareRows(this.#sorted[middle]!, row) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function compareRows(a: ServiceRow, b: ServiceRow): number {
  return levels.indexOf(a.level) - levels.indexOf(b.level) || compare(a.service, b.service);
}

/** Namespaces and names of Services contain no slash. */
function serviceOf(key: PortKey): ServiceName {
  return key.split("/", 2).join("/");
}

function namespaceOf(service: ServiceName): string {
  return service.slice(0, service.indexOf("/"));
}

function byService(problems: readonly Problem[]): ReadonlyMap<ServiceName, readonly Problem[]> {
  const found = new Map<ServiceName, Problem[]>();
  for (const problem of problems) {
    const [, service] = /^Service (\S+)$/.exec(problem.object) ?? [];
    if (service !== undefined) found.set(service, [...(found.get(service) ?? []), problem]);
  }
  return found;
}

function sameProblems(a: readonly Problem[] | undefined, b: readonly Problem[] | undefined): boolean {
  return JSON.stringify(a ?? []) === JSON.stringify(b ?? []);
}
