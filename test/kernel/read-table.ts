// A table of the kernel with all its elements read.
import type { Element } from "../../src/host/netlink/elements.ts";
import type { NfFamily } from "../../src/host/netlink/netfilter.ts";
import { readTable, type TableContents } from "../../src/host/netlink/ruleset.ts";
import type { Place } from "../../src/host/netlink/socket.ts";

export type WholeTable = Omit<TableContents, "elements"> & {
  readonly elements: ReadonlyMap<string, readonly Element[]>;
};

/** Null when there is no such table. */
export function readWhole(
  family: NfFamily,
  name: string,
  place: Place,
  signal?: AbortSignal,
): Promise<WholeTable | null> {
  return readTable(
    { family, name, place, signal },
    () => true,
    (contents) => ({
      ...contents,
      elements: new Map([...contents.elements].map(([set, elements]) => [set, elements.all()])),
    }),
  );
}

/** Of a set in the table `ip t`. */
export async function readElementsOf(
  set: string,
  place: Place,
  signal?: AbortSignal,
): Promise<readonly Element[]> {
  return (await readWhole("ip", "t", place, signal))!.elements.get(set)!;
}
