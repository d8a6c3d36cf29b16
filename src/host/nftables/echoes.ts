// What deleted elements had counted, from the kernel's echo of their deletion: exact, because nothing counts in them any more.
import type { Operation } from "../../plan/nftables/diff.ts";
import type { NftSet } from "../../plan/nftables/types.ts";
import { dumpedElements } from "../netlink/elements.ts";
import { netfilterHeaderLength } from "../netlink/netfilter.ts";
import { codecs, verbOf } from "../netlink/nftables.ts";
import { copiedLists } from "../netlink/ruleset.ts";
import type { Visit } from "../netlink/socket.ts";
import { decodePackets } from "./elements.ts";

/** Collects it by `elementId`; undefined when the Patch deletes no element that counts. */
export function echoesInto(removed: Map<string, number>, patch: readonly Operation[]): Visit | undefined {
  const sets = new Map<string, NftSet>();
  for (const operation of patch)
    if (operation.kind === "delete elements" && operation.set.counted)
      sets.set(operation.set.name, operation.set);
  if (sets.size === 0) return undefined;
  return (from, message) => {
    if (verbOf(message.type) !== "delElements") return;
    const { set: name } =
      codecs.elements.read(from, message.start + netfilterHeaderLength, message.end) ?? {};
    const set = name === undefined ? undefined : sets.get(name);
    if (set === undefined) return;
    for (const [id, packets] of decodePackets(set, dumpedElements(copiedLists(from, message)).all()))
      removed.set(id, packets);
  };
}
