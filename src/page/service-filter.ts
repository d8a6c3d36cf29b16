// Reads the filters and the window of the table of Services from a query.
import { type Parsed, parsed, refused } from "../config/units/parsed.ts";
import type { Level, ServiceType } from "./json.ts";
import type { ServiceFilter } from "./table.ts";

const types: readonly ServiceType[] = ["ClusterIP", "NodePort", "LoadBalancer"];
const levels: readonly Level[] = ["trouble", "warning", "ok"];
const mostRows = 500;

export function filterOf(query: URLSearchParams): Parsed<ServiceFilter> {
  const [type, level] = [query.get("type"), query.get("level")];
  if (type && !isOneOf(types, type)) return refused(`type must be one of ${types.join(", ")}`);
  if (level && !isOneOf(levels, level)) return refused(`level must be one of ${levels.join(", ")}`);
  return parsed({
    namespace: query.get("namespace") || null,
    type: (type || null) as ServiceType | null,
    level: (level || null) as Level | null,
    text: (query.get("q") ?? "").trim().toLowerCase(),
  });
}

export function windowOf(query: URLSearchParams): { readonly offset: number; readonly limit: number } {
  const number = (name: string, fallback: number, most: number) => {
    const text = query.get(name) ?? "";
    return /^\d{1,7}$/.test(text) ? Math.min(Number(text), most) : fallback;
  };
  return { offset: number("offset", 0, 10_000_000), limit: number("limit", 100, mostRows) };
}

function isOneOf<T extends string>(all: readonly T[], text: string): text is T {
  return (all as readonly string[]).includes(text);
}
