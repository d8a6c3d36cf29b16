// The flows that a node tracks: where it sends packets whose answer never came.
import { readFileSync } from "node:fs";
import { type Address, parseAddress } from "../../src/model/address.ts";
import type { Endpoint } from "./libc.ts";
import type { Namespace } from "./netns.ts";

/** A tracked flow, as its first packet came in and as its answer is expected. */
export type Flow = {
  readonly protocol: string;
  readonly from: Endpoint;
  readonly to: Endpoint;
  readonly answerFrom: Endpoint;
  readonly answerTo: Endpoint;
};

export function readFlows(node: Namespace): Flow[] {
  const text = node.inside(() => readFileSync("/proc/thread-self/net/nf_conntrack", "utf8"));
  return text.split("\n").flatMap((line) => {
    const ends = [...line.matchAll(/src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)/g)];
    const [there, back] = ends;
    if (there === undefined || back === undefined) return [];
    return [
      {
        protocol: line.split(/\s+/)[2]!,
        from: { address: canonical(there[1]!), port: Number(there[3]) },
        to: { address: canonical(there[2]!), port: Number(there[4]) },
        answerFrom: { address: canonical(back[1]!), port: Number(back[3]) },
        answerTo: { address: canonical(back[2]!), port: Number(back[4]) },
      },
    ];
  });
}

function canonical(text: string): Address {
  return parseAddress(text) ?? text;
}
