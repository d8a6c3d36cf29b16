// The cells of the comparison: every Frontend of a cluster state, from every kind of sender.
import type { Address } from "../../src/model/address.ts";
import { familyOf, joinHostPort } from "../../src/model/address.ts";
import {
  inFamily,
  outsideAddresses,
  type Place,
  places,
  secondNodeAddress,
  serviceNetwork,
} from "../places.ts";
import type { KubeObject } from "../reference/objects.ts";

export type Protocol = "tcp" | "udp" | "sctp";

export type Cell = {
  readonly from: Sender;
  readonly protocol: Protocol;
  readonly to: { readonly address: Address; readonly port: number };
  /** `namespace/name` of the Service that the frontend belongs to; empty for none. */
  readonly service: string;
  /** What kind of frontend it is. */
  readonly kind: FrontendKind;
  /** Clients stick to an endpoint: which one is chance. */
  readonly sticky: boolean;
};

export type FrontendKind =
  | "cluster IP"
  | "external IP"
  | "load-balancer IP"
  | "node port"
  | "node port on another address"
  | "node port on loopback"
  | "undefined port"
  | "other protocol"
  /** Of no Service, or of one that another proxy serves. */
  | "unserved cluster IP"
  | "unused node port";

/** A place, and the outside address it speaks from where it has several. */
export type Sender = { readonly place: Place; readonly source: Address | null };

export const senders: readonly Sender[] = [
  { place: "L1", source: null },
  { place: "L2", source: null },
  { place: "R1", source: null },
  { place: "host", source: null },
  { place: "RN", source: null },
  { place: "X", source: places.X },
  { place: "X", source: outsideAddresses[1]! },
];

/** Whether a sender can speak from many addresses, and so is not bound to one endpoint by affinity. */
export function hasManyAddresses({ source }: Sender): boolean {
  return source === places.X;
}

export function cellsOf(objects: readonly KubeObject[]): readonly Cell[] {
  const services = objects.filter(({ kind }) => kind === "Service") as unknown as readonly Service[];
  const frontends = [...services.flatMap(frontendsOf), ...nobodysFrontends];
  return frontends.flatMap(({ senders: who, ...frontend }) => who.map((from) => ({ from, ...frontend })));
}

/** `L2 → 172.30.0.1:80/tcp (cluster IP of shop/web)` */
export function cellText({ from, to, protocol, kind, service }: Cell): string {
  const who =
    from.source === null ? from.place : `${from.place} (${inFamily(from.source, familyOf(to.address))})`;
  const whose = service === "" ? kind : `${kind} of ${service}`;
  return `${who} → ${joinHostPort(to.address, to.port)}/${protocol} (${whose})`;
}

type Frontend = Omit<Cell, "from"> & { readonly senders: readonly Sender[] };

/** What is read of a Service here. */
type Service = {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    /** "None" in headless Services; absent in those of type ExternalName. */
    readonly clusterIPs?: readonly Address[];
    readonly externalIPs?: readonly Address[];
    readonly ports: readonly {
      readonly protocol: string;
      readonly port: number;
      readonly nodePort?: number;
    }[];
    readonly sessionAffinity: string;
  };
  readonly status: { readonly loadBalancer: { readonly ingress?: readonly { readonly ip?: Address }[] } };
};

const pick = (...who: readonly Place[]): readonly Sender[] =>
  senders.filter(({ place }) => who.includes(place));

function frontendsOf({ metadata, spec, status }: Service): readonly Frontend[] {
  const service = `${metadata.namespace}/${metadata.name}`;
  const sticky = spec.sessionAffinity === "ClientIP";
  const served = metadata.labels?.["service.kubernetes.io/service-proxy-name"] === undefined;
  const clusterIPs = (spec.clusterIPs ?? []).filter((address) => address !== "None");
  const balanced = (status.loadBalancer.ingress ?? []).flatMap(({ ip }) => (ip === undefined ? [] : [ip]));
  const addressed: readonly (readonly [FrontendKind, readonly Address[]])[] = [
    [served ? "cluster IP" : "unserved cluster IP", clusterIPs],
    ["external IP", spec.externalIPs ?? []],
    ["load-balancer IP", balanced],
  ];
  const frontend = (
    kind: FrontendKind,
    protocol: string,
    address: Address,
    port: number,
    who = senders,
  ): Frontend => ({
    kind,
    service,
    sticky,
    protocol: protocol.toLowerCase() as Protocol,
    to: { address, port },
    senders: who,
  });
  const ownFamilies = new Set(clusterIPs.map(familyOf));
  const ofPorts = spec.ports.flatMap(({ protocol, port, nodePort }) => [
    ...addressed.flatMap(([kind, addresses]) =>
      addresses.map((address) => frontend(kind, protocol, address, port)),
    ),
    ...[...ownFamilies].flatMap((family) =>
      nodePort === undefined
        ? []
        : [
            frontend("node port", protocol, inFamily(places.host, family), nodePort),
            frontend(
              "node port on another address",
              protocol,
              inFamily(secondNodeAddress, family),
              nodePort,
              pick("L2", "host", "X"),
            ),
            frontend(
              "node port on loopback",
              protocol,
              inFamily("127.0.0.1", family),
              nodePort,
              pick("host"),
            ),
          ],
    ),
  ]);
  const other = spec.ports.every(({ protocol }) => protocol !== "UDP") ? "udp" : null;
  const wrongPort = served ? "undefined port" : "unserved cluster IP";
  const wrongProtocol = served ? "other protocol" : "unserved cluster IP";
  const wrong = clusterIPs.flatMap((address) => [
    frontend(wrongPort, "tcp", address, 9999, pick("L2", "host", "X")),
    ...(other ? [frontend(wrongProtocol, other, address, spec.ports[0]!.port, pick("L2", "host", "X"))] : []),
  ]);
  return [...ofPorts, ...wrong];
}

const nobodysFrontends: readonly Frontend[] = (["ipv4", "ipv6"] as const).flatMap((family) => {
  const nobodys = { service: "", sticky: false, protocol: "tcp", senders: pick("L2", "host", "X") } as const;
  const unallocated = inFamily(serviceNetwork.replace("0.0/16", "0.250"), family);
  return [
    { ...nobodys, kind: "unserved cluster IP", to: { address: unallocated, port: 80 } },
    { ...nobodys, kind: "unused node port", to: { address: inFamily(places.host, family), port: 32767 } },
  ] as const;
});
