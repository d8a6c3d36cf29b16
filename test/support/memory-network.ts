// A network of pods without namespaces: assigns addresses like the playground, and refuses more pods than fit on a node.
import { CannotStart } from "../../playground/cannot-start.ts";
import type { PodNetwork } from "../../playground/cluster/controller.ts";
import { podAddresses } from "../../playground/net/layout.ts";

export function memoryNetwork(): PodNetwork {
  const pods = new Map<string, { readonly node: string; readonly index: number }>();
  return {
    attach(label, pod, node) {
      const taken = new Set(
        [...pods.values()].filter((each) => each.node === node.name).map(({ index }) => index),
      );
      let index = 1;
      while (taken.has(index)) index++;
      if (index > 250) throw new CannotStart(`cannot connect pod ${pod}: ${node.name} has no address left`);
      pods.set(label, { node: node.name, index });
      return { node, addresses: podAddresses(node, index) };
    },
    detach: (label) => void pods.delete(label),
  };
}
