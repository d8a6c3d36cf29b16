// Parses FROM and TO of `explain`: the sender and the destination. Errors show an example.
import { type Parsed, parsed, refused } from "../config/units/parsed.ts";
import { type Address, type Family, familyOf, parseAddress } from "../model/address.ts";
import type { Protocol } from "../model/snapshot.ts";

/** The sender. `named`: a pod or a node by its name, which must be resolved. */
export type From =
  | {
      readonly kind: "pod";
      readonly address: Address;
      /** Its address of the other IP family. */
      readonly otherAddress?: Address;
    }
  | { readonly kind: "node" }
  /** `anybody`: any outside client, so an example address of the other family can be used as well. */
  | { readonly kind: "outside"; readonly address: Address; readonly anybody?: true }
  | {
      readonly kind: "named";
      readonly namespace: string | null;
      readonly name: string;
      /** Which of the two it is, where the text determines it. */
      readonly only?: "pod" | "node";
    };

/** Where to. */
export type To =
  | {
      readonly kind: "address";
      readonly address: Address;
      readonly port: number;
      readonly protocol: Protocol;
    }
  | {
      readonly kind: "service";
      /** null: any in which there is one of this name. */
      readonly namespace: string | null;
      readonly name: string;
      /** A port's number or name; null: the only one. */
      readonly port: string | null;
      /** null: any. */
      readonly protocol: Protocol | null;
    }
  | { readonly kind: "nodePort"; readonly port: number; readonly protocol: Protocol };

export const fromExamples =
  "pod:10.0.1.5, pod:shop/web-1, pod/web-1, web-1, node, node/node-a, outside:203.0.113.9";
export const toExamples =
  "10.96.0.10:53/udp, [fd30::10]:80, svc/shop/web:80, svc/shop/web:http, svc/web, web:80, nodeport:30080";

/** Addresses of the networks that are set aside for examples. */
export const outsideExample: Readonly<Record<Family, Address>> = {
  ipv4: "203.0.113.9",
  ipv6: "2001:db8:9::9",
};

/** The family, where the text determines it. */
export function familyOfTo(to: To): Family | null {
  return to.kind === "address" ? familyOf(to.address) : null;
}

export function parseFrom(text: string): Parsed<From> {
  const named = namedSender(text);
  if (named !== null) return parsed(named);
  const [, word, rest] = /^(pod|outside):(.*)$/.exec(text) ?? [];
  const pair = word === "pod" ? addressPair(rest ?? "") : null;
  if (pair !== null) return parsed({ kind: "pod", address: pair[0], otherAddress: pair[1] });
  const address = parseAddress((rest ?? text).replace(/^\[(.*)\]$/, "$1"));
  if (text === "node") return parsed({ kind: "node" });
  if (text === "outside") return parsed({ kind: "outside", address: outsideExample.ipv4, anybody: true });
  if (address !== null) return parsed({ kind: word === "pod" ? "pod" : "outside", address });
  if (/^[\d.]+$/.test(rest ?? text))
    return refused(
      `invalid sender ${JSON.stringify(text)}: not an IP address; use for example ${fromExamples}`,
    );
  const [, namespace, name] =
    /^(?:([a-z0-9-]+)\/)?([a-z0-9]([a-z0-9.-]*[a-z0-9])?)$/.exec(rest ?? text) ?? [];
  if (name !== undefined && word !== "outside")
    return parsed({ kind: "named", namespace: namespace ?? null, name });
  return refused(`invalid sender ${JSON.stringify(text)}; use for example ${fromExamples}`);
}

/** `pod/web-1`, `pod/shop/web-1` and `node/node-a`, as kubectl writes them. */
function namedSender(text: string): From | null {
  const [, word, namespace, name] =
    /^(po|pod|pods|no|node|nodes)\/(?:([a-z0-9-]+)\/)?([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)$/.exec(text) ?? [];
  if (word === undefined || name === undefined) return null;
  const only = word.startsWith("po") ? "pod" : "node";
  if (only === "node" && namespace !== undefined) return null;
  return { kind: "named", namespace: namespace ?? null, name, only };
}

/** `10.0.1.5,fd00:1::5`: both addresses of a dual-stack pod. */
function addressPair(text: string): readonly [Address, Address] | null {
  const [first, second, ...more] = text.split(",").map((each) => parseAddress(each));
  if (first == null || second == null || more.length > 0) return null;
  return familyOf(first) === familyOf(second) ? null : [first, second];
}

/** What `parseFrom` reads as this sender. */
export function senderText(from: Exclude<From, { kind: "named" }>): string {
  if (from.kind === "node" || (from.kind === "outside" && from.anybody)) return from.kind;
  const other = from.kind === "pod" && from.otherAddress !== undefined ? `,${from.otherAddress}` : "";
  return `${from.kind}:${from.address}${other}`;
}

export function parseTo(text: string): Parsed<To> {
  const mistake = refused(`invalid destination ${JSON.stringify(text)}; examples: ${toExamples}`);
  if (parseAddress(text) !== null)
    return refused(`no port in ${text}; use for example ${text.includes(":") ? `[${text}]` : text}:80`);
  const [, place, digits, protocol = "tcp"] = /^(.+):(\d{1,5})(?:\/(tcp|udp|sctp))?$/.exec(text) ?? [];
  const port = Number(digits);
  if (place !== undefined && (port < 1 || port > 65_535))
    return refused(`invalid port ${digits}: must be between 1 and 65535, for example svc/shop/web:80`);
  if (place === "nodeport") return parsed({ kind: "nodePort", port, protocol: protocol as Protocol });
  const address = parseAddress((place ?? "").replace(/^\[(.*)\]$/, "$1"));
  if (address !== null) return parsed({ kind: "address", address, port, protocol: protocol as Protocol });
  const service = serviceIn(text);
  return service === null ? mistake : parsed(service);
}

/** `svc/shop/web:80/tcp`, `shop/web:80`, `web`, `web.shop.svc.cluster.local`, `http://web.shop/`. */
function serviceIn(text: string): To | null {
  const [, prefix, plain = ""] = /^(https?:\/\/|svc\/|services?\/)?(.*?)\/?$/.exec(text) ?? [];
  const port = String.raw`(?::([a-z0-9-]+)(?:\/(tcp|udp|sctp))?)?`;
  const path = new RegExp(`^(?:([a-z0-9-]+)\\/)?([a-z0-9-]+)${port}$`).exec(plain);
  const domain = new RegExp(`^([a-z0-9-]+)\\.([a-z0-9-]+)(?:\\.svc(?:\\.[a-z0-9.-]+)?)?${port}$`).exec(plain);
  const namespace = path?.[1] ?? domain?.[2] ?? null;
  const name = path?.[2] ?? domain?.[1];
  // Numbers alone are more likely a part of an address.
  if (name === undefined || (prefix === undefined && (name === "nodeport" || !/[a-z]/.test(name))))
    return null;
  const [, , , number, protocol] = path ?? domain ?? [];
  return {
    kind: "service",
    namespace,
    name,
    port: number ?? null,
    protocol: (protocol ?? null) as Protocol | null,
  };
}
