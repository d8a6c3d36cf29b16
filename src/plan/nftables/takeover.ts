// From an existing table, also of another program, to the wanted one: in place where possible, else by one replacement.
import { canBeChangedInto, diff, type Operation, replacement } from "./diff.ts";
import type { FoundTable, NftTable } from "./types.ts";

export type Takeover = {
  readonly patch: readonly Operation[];
  /** What the Patch starts from; null when it builds the whole table from scratch. */
  readonly from: NftTable | null;
};

/**
 * `owned`: this process must own the table. The kernel does not turn a plain table into an owned one or back (it returns
 * EOPNOTSUPP), so these are replaced; session affinity entries are kept. An orphan is adopted
 * as it is.
 */
export function takeOver(found: FoundTable | null, want: NftTable, owned: boolean): Takeover {
  if (found === null) return { patch: diff(null, want), from: null };
  const { table, ownership } = found;
  const fits = owned ? ownership !== "plain" : ownership === "plain";
  if (!fits || !canBeChangedInto(table, want)) {
    return { patch: [...replacement(want), ...remembrances(found, want)], from: null };
  }
  const patch = diff(table, want);
  return { patch: owned && ownership === "orphan" ? [{ kind: "add table" }, ...patch] : patch, from: table };
}

function remembrances({ remembered }: FoundTable, want: NftTable): Operation[] {
  return [...remembered].flatMap(([name, clients]): Operation[] => {
    const set = want.sets.get(name);
    return set === undefined ? [] : [{ kind: "remember clients", set, clients }];
  });
}
