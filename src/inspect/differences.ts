// How a host differs from what it should hold in the given families, one line per difference; changes nothing.
import { type Family, families } from "../model/address.ts";
import type { HostQuery, Mode } from "../modes/mode.ts";
import type { Routes } from "../routing/routes.ts";

export type NodeQuery = Omit<HostQuery, "family" | "routes"> & {
  readonly routes: (family: Family) => Promise<Routes>;
};

export async function differences(
  mode: Mode,
  query: NodeQuery,
  served: readonly Family[] = families,
): Promise<string[]> {
  const found = served.map(async (family) => {
    const lines = await mode.differences({ ...query, family, routes: () => query.routes(family) });
    return lines.map((line) => `${family}: ${line}`);
  });
  return (await Promise.all(found)).flat();
}
