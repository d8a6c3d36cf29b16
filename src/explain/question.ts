// Parses FROM and TO of `explain`: the sender and the destination. Errors show an example.
import { type Parsed, parsed, refused } from "../config/units/parsed.ts";
import { type Address, type Family, familyOf, parseAddress } from "../model/address.ts";
import type { Protocol } from "../model/snapshot.ts";

/** The sender. `named`: a pod or a node by its name, which must be resolved. */
export type From =
  | { readonly kind: "pod"; readonly address: Address }
  | { readonly kind: "node" }
  /** `anybody`: any outside client, so an example address of the other family can be used as well. */
  | { readonly kind: "outside"; readonly address: Address; readonly anybody?: true }
  | { readonly kind: "named"; readonly namespace: string | null; readonly name: string };

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
      readonly namespace: string;
      readonly name: string;
      /** A port's number or name; null: the only one. */
      readonly port: string | null;
      /** null: any. */
      readonly protocol: Protocol | null;
    }
  | { readonly kind: "nodePort"; readonly port: number; readonly protocol: Protocol };

export const fromExamples = "pod:10.0.1.5, pod:shop/web-1, web-1, node, outside:203.0.113.9";
export const toExamples =
  "10.96.0.10:53/udp, [fd30::10]:80, svc/shop/web:80, svc/shop/web:http, nodeport:30080";

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
  const [, word, rest] = /^(pod|outside):(.*)$/.exec(text) ?? [];
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

/** What `parseFrom` reads as this sender. */
export function senderText(from: Exclude<From, { kind: "named" }>): string {
  if (from.kind === "node" || (from.kind === "outside" && from.anybody)) return from.kind;
  return `${from.kind}:${from.address}`;
}

export function parseTo(text: string): Parsed<To> {
  const meant = serviceMeant(text);
  const hint = meant === null ? "" : `for a Service use ${meant}; `;
  const mistake = refused(`invalid destination ${JSON.stringify(text)}; ${hint}examples: ${toExamples}`);
  const [, service] = /^(?:svc|service)\/(.+)$/.exec(text) ?? [];
  if (service !== undefined) {
    const [, namespace, name, port, protocol] =
      /^(?:([a-z0-9-]+)\/)?([a-z0-9-]+)(?::([a-z0-9-]+)(?:\/(tcp|udp|sctp))?)?$/.exec(service) ?? [];
    if (name === undefined) return mistake;
    return parsed({
      kind: "service",
      namespace: namespace ?? "default",
      name,
      port: port ?? null,
      protocol: (protocol ?? null) as Protocol | null,
    });
  }
  if (parseAddress(text) !== null)
    return refused(`no port in ${text}; use for example ${text.includes(":") ? `[${text}]` : text}:80`);
  const [, place, digits, protocol = "tcp"] = /^(.+):(\d{1,5})(?:\/(tcp|udp|sctp))?$/.exec(text) ?? [];
  const port = Number(digits);
  if (place === undefined) return mistake;
  if (port < 1 || port > 65_535)
    return refused(`invalid port ${digits}: must be between 1 and 65535, for example svc/shop/web:80`);
  if (place === "nodeport") return parsed({ kind: "nodePort", port, protocol: protocol as Protocol });
  const address = parseAddress(place.replace(/^\[(.*)\]$/, "$1"));
  return address === null
    ? mistake
    : parsed({ kind: "address", address, port, protocol: protocol as Protocol });
}

/** Of `shop/web:80`, `web.shop.svc.cluster.local`, `http://web.shop/` or `web`: how to write it here. */
function serviceMeant(text: string): string | null {
  const plain = text.replace(/^(https?:\/\/|svc\/|service\/)/, "").replace(/\/$/, "");
  const [, folder, name, port = ""] = /^([a-z0-9-]+)\/([a-z0-9-]+)(:[a-z0-9-]+)?$/.exec(plain) ?? [];
  if (name !== undefined) return `svc/${folder}/${name}${port}`;
  const [, host, domain, dnsPort = ""] =
    /^(\d*[a-z-][a-z0-9-]*)(?:\.([a-z0-9-]+)(?:\.svc(?:\.[a-z0-9.-]+)?)?)?(:[a-z0-9-]+)?$/.exec(plain) ?? [];
  if (host === undefined || host === "nodeport") return null;
  return `svc/${domain ?? "NAMESPACE"}/${host}${dnsPort}`;
}
