// How the nftables table of a host differs from the Plan, one line per difference; changes nothing.
import { NftablesHost } from "../../../host/nftables/host.ts";
import { diff, type Operation } from "../../../plan/nftables/diff.ts";
import { nftFamilyOf } from "../../../plan/nftables/types.ts";
import type { HostQuery } from "../../mode.ts";
import { compileTable } from "../compile.ts";

/** Reads the kernel while the Routes are being made. */
export async function nftablesDifferences({ family, routes, at, signal }: HostQuery): Promise<string[]> {
  const host = await NftablesHost.open({ family: nftFamilyOf(family), ...at });
  try {
    const compiled = routes().then((made) => compileTable(made));
    const [have, want] = await Promise.all([host.read(compiled, signal), compiled]);
    return differenceLines(diff(have, want));
  } finally {
    await host.close();
  }
}

/** A table that is missing or must be recreated is one difference: everything in it follows from that. */
function differenceLines(operations: readonly Operation[]): string[] {
  const whole = operations.find(({ kind }) => kind === "delete table" || kind === "add table");
  return whole === undefined ? operations.flatMap(operationLines) : operationLines(whole);
}

function operationLines(operation: Operation): string[] {
  switch (operation.kind) {
    case "add table":
      return ["the whole table is missing"];
    case "delete table":
      return ["the table must be recreated"];
    case "add set":
      return [`missing set ${operation.set.name}`];
    case "delete set":
      return [`foreign set ${operation.name}`];
    case "add counter":
      return [`missing counter ${operation.name}`];
    case "delete counter":
      return [`foreign counter ${operation.name}`];
    case "add chain":
      return [`missing chain ${operation.chain.name}`];
    case "add rules":
      return [`missing rules in chain ${operation.chain.name}`];
    case "flush chain":
      return [`wrong rules in chain ${operation.name}`];
    case "delete chain":
      return [`foreign chain ${operation.name}`];
    case "add elements":
      return operation.items.map(({ key }) => `missing element ${key} in ${operation.set.name}`);
    case "add slots":
      return operation.spreads.map(({ key }) => `missing slots of ${key} in ${operation.set.name}`);
    case "delete elements":
      return operation.items.map(({ key }) => `foreign element ${key} in ${operation.set.name}`);
    case "remember clients":
      return [];
  }
}
