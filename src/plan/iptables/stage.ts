// Cuts a huge change of the nat table into layers that take effect one after the other, deepest first.
import type { Chain, ChainName, IptablesPatch, Step } from "./types.ts";

/**
 * `iptables-nft-restore` keeps the chains of a transaction in a sorted list that it walks from the front for each line, so
 * that a load of many thousand chains and jumps in one go takes quadratic time. In layers, each written from the last name to the first, the
 * walk is always short. A layer leads only into layers before it, and the entrances are the last of all: no packet ever
 * reaches a half-built Service. Small changes, and other tables, stay whole.
 */
export function stage(patch: IptablesPatch): IptablesPatch {
  return { ...patch, steps: patch.steps.flatMap(layersOf) };
}

/**
 * Rules in one transaction: few enough for short walks, many enough for few commits. With longer ones a later
 * `iptables-save` is slower, because its sort takes quadratic time for chains that were created in the order of their names.
 */
const batchLines = 2000;

function layersOf(step: Step): readonly Step[] {
  if (step.table !== "nat" || batches(step.write).length === 1) return [step];
  const byLayer = Map.groupBy(step.write, ({ name }) => layerOf(name));
  const early = layers
    .flatMap((_, layer) => batches(byLayer.get(layer) ?? []))
    .map((write): Step => ({ table: "nat", write, remove: [], prepend: [], append: [], doom: [] }));
  return [...early, { ...step, write: byLayer.get(entrances) ?? [] }];
}

function batches<T extends Chain>(chains: readonly T[]): T[][] {
  const all: T[][] = [];
  let room = 0;
  for (const chain of chains) {
    if (all.length === 0 || chain.rules.length > room) {
      all.push([]);
      room = batchLines;
    }
    all.at(-1)!.push(chain);
    room -= chain.rules.length;
  }
  return all;
}

const layers = [["KUBE-MARK-MASQ"], ["KUBE-SEP-"], ["KUBE-SVC-", "KUBE-SVL-"], ["KUBE-EXT-"], ["KUBE-FW-"]];

/** The chains of no layer, which are written last. */
const entrances = -1;

function layerOf(name: ChainName): number {
  return layers.findIndex((prefixes) => prefixes.some((prefix) => name.startsWith(prefix)));
}

/** Whether no rule of these chains leads to another of them: then each can be filled before the next is created. */
export function areIndependent(chains: readonly Chain[]): boolean {
  const names = new Set<ChainName>();
  for (const { name } of chains) names.add(name);
  for (const { rules } of chains)
    for (const { target } of rules) if (target.kind === "jump" && names.has(target.chain)) return false;
  return true;
}
