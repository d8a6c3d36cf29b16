// What changes between two clusters as one node sees them: which Services, which Frontends, which packets. Pure.
import { type Family, families } from "../model/address.ts";
import { type PortKey, portLabel } from "../model/snapshot.ts";
import { printTarget } from "../routing/print.ts";
import { printFrontend } from "../routing/print-frontend.ts";
import {
  frontendId,
  hasSameRoutes,
  type PortRoutes,
  type Route,
  type Routes,
  type Sender,
} from "../routing/routes.ts";
import type { BothRoutes } from "./resolve.ts";

/** What happens to packets of these senders at a Frontend, before and after; null: no such Frontend. */
export type ResultChange = {
  readonly senders: readonly Sender[];
  readonly before: string | null;
  readonly after: string | null;
};

/** `fates` is a key of `diff -o json`. */
export type FrontendChange = { readonly frontend: string; readonly fates: readonly ResultChange[] };

export type PortChange = {
  readonly family: Family;
  readonly kind: "added" | "removed" | "changed";
  readonly service: string;
  readonly protocol: string;
  readonly frontends: readonly FrontendChange[];
};

/** Sorted by family and ServicePort; nothing for those whose packets are all handled as before. */
export function compareRoutes(before: BothRoutes, after: BothRoutes): PortChange[] {
  return families.flatMap((family) => {
    const [old, now] = [before[family], after[family]];
    return [...differingKeys(old, now)]
      .sort()
      .flatMap((key) => comparePort(family, old.ports.get(key), now.ports.get(key)));
  });
}

function differingKeys(old: Routes, now: Routes): ReadonlySet<PortKey> {
  const keys = new Set([...old.ports.keys(), ...now.ports.keys()]);
  for (const key of keys) if (hasSameRoutes(old, now, key)) keys.delete(key);
  return keys;
}

function comparePort(
  family: Family,
  before: PortRoutes | undefined,
  after: PortRoutes | undefined,
): PortChange[] {
  const frontends = compareFrontends(before?.routes ?? [], after?.routes ?? []);
  if (frontends.length === 0) return [];
  const { port } = (after ?? before)!;
  const kind = before === undefined ? "added" : after === undefined ? "removed" : "changed";
  return [{ family, kind, service: portLabel(port), protocol: port.protocol, frontends }];
}

/** Frontends at which packets are handled differently. */
export function compareFrontends(before: readonly Route[], after: readonly Route[]): FrontendChange[] {
  const byId = (routes: readonly Route[]) =>
    new Map(routes.map((route) => [frontendId(route.frontend), route]));
  const [old, now] = [byId(before), byId(after)];
  return [...new Set([...old.keys(), ...now.keys()])].flatMap((id) => {
    const results = compareResults(old.get(id), now.get(id));
    const { frontend } = (now.get(id) ?? old.get(id))!;
    return results.length === 0 ? [] : [{ frontend: printFrontend(frontend), fates: results }];
  });
}

/** Senders for which the change is the same share an entry. */
function compareResults(before: Route | undefined, after: Route | undefined): ResultChange[] {
  const changes = new Map<string, { senders: Sender[]; before: string | null; after: string | null }>();
  for (const sender of ["pod", "node", "outside"] as const) {
    const [old, now] = [resultOf(before, sender), resultOf(after, sender)];
    if (old === now) continue;
    const change = changes.get(`${old}|${now}`);
    if (change === undefined) changes.set(`${old}|${now}`, { senders: [sender], before: old, after: now });
    else change.senders.push(sender);
  }
  return [...changes.values()];
}

function resultOf(route: Route | undefined, sender: Sender): string | null {
  if (route === undefined) return null;
  const only = route.allowed === null ? "" : `, only from ${route.allowed.join(", ")}`;
  return `${printTarget(route.from[sender])}${only}`;
}

export function printComparison(changes: readonly PortChange[]): string {
  if (changes.length === 0) return "No packet is handled differently.\n";
  return changes.map(printChange).join("\n");
}

const signs = { added: "+", removed: "-", changed: "~" } as const;

function printChange({ kind, service, protocol, family, frontends }: PortChange): string {
  const lines = [`${signs[kind]} ${service}  ${protocol}, ${family}`];
  for (const { frontend, fates: results } of frontends) {
    lines.push(`    ${frontend}`);
    for (const { senders, before, after } of results) {
      lines.push(`      ${senders.length === 3 ? "all senders" : senders.join(", ")}`);
      if (before !== null) lines.push(`      - ${before}`);
      if (after !== null) lines.push(`      + ${after}`);
    }
  }
  return `${lines.join("\n")}\n`;
}
