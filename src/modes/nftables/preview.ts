// What nftables mode would write, as a script for nft and as JSON.
import { print, printVerdict } from "../../plan/nftables/print.ts";
import type { Element, NftTable } from "../../plan/nftables/types.ts";
import type { Routes } from "../../routing/routes.ts";
import type { Preview } from "../mode.ts";
import { compileTable } from "./compile.ts";

export function previewNftables(routes: Routes): Preview {
  const table = compileTable(routes);
  return { text: () => print(table), json: () => tableJson(table) };
}

function tableJson(table: NftTable): object {
  const plain = <V>(maps: ReadonlyMap<string, ReadonlyMap<string, V>>, json: (value: V) => object) =>
    Object.fromEntries([...maps].map(([name, map]) => [name, [...map.values()].map(json)]));
  return {
    sets: [...table.sets.values()],
    chains: [...table.chains.values()],
    counters: [...table.counters],
    elements: plain(table.elements, elementJson),
    spreads: plain(table.spreads, (slots) => slots),
  };
}

function elementJson(element: Element): object {
  return { ...element, data: element.data === null ? null : printVerdict(element.data) };
}
