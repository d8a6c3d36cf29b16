// Names that every JavaScript object inherits are ordinary names, keys and values, wherever JSON is read.
import { expect, it } from "vitest";
import type { Snapshot } from "../model/snapshot.ts";
import { Cluster } from "./cluster.ts";
import { type Kind, kinds, slim } from "./objects.ts";

const hostile = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "length"];
/** As long as the longest, and sorted as they are: in one place of an order. */
const neutral = "neutral";

/** Every place of the four kinds that may contain a name, key or free text. */
function clusterWith(word: string): Readonly<Record<Kind, readonly string[]>> {
  const json = (value: unknown) => JSON.stringify(value);
  // Written as text, because `{ __proto__: … }` in a program is something else than in JSON.
  const bag = `{${json(word)}:${json(word)},"kubernetes.io/service-name":${json(word)}}`;
  const strange = `${json(word)}:{"polluted":"yes"}`;
  return {
    Service: [
      `{${strange},"metadata":{${strange},"name":${json(word)},"namespace":${json(word)},"labels":${bag},"annotations":${bag}},
        "spec":{${strange},"type":"LoadBalancer","clusterIP":"172.30.0.10","externalTrafficPolicy":${json(word)},
        "sessionAffinity":${json(word)},"sessionAffinityConfig":{${strange}},
        "ports":[{${strange},"name":${json(word)},"port":80,"protocol":"TCP"},{"name":"x","port":81,"protocol":${json(word)}}]},
        "status":{"loadBalancer":{${strange},"ingress":[{${strange},"ip":"198.51.100.7","ipMode":${json(word)}}]}}}`,
    ],
    EndpointSlice: [
      `{${strange},"metadata":{"name":${json(word)},"namespace":${json(word)},"labels":${bag},"annotations":${bag}},
        "addressType":"IPv4","ports":[{${strange},"name":${json(word)},"port":8080,"protocol":"TCP"}],
        "endpoints":[{${strange},"addresses":["10.0.0.1"],"nodeName":${json(word)},"conditions":{${strange},"ready":true},
        "hints":{${strange},"forZones":[{"name":${json(word)}}],"forNodes":[{"name":${json(word)}}]}}]}`,
      `{"metadata":{"name":"x","namespace":"y","labels":${bag}},"addressType":${json(word)},"endpoints":[]}`,
    ],
    Node: [
      `{${strange},"metadata":{"name":${json(word)},"labels":{${json(word)}:"x","topology.kubernetes.io/zone":${json(word)}}},
        "spec":{"podCIDRs":["10.0.0.0/24"],"taints":[{"key":${json(word)},${strange}}]},
        "status":{"addresses":[{"type":"InternalIP","address":"192.168.0.1"},{"type":${json(word)},"address":"192.168.0.2"}]}}`,
    ],
    ServiceCIDR: [
      `{${strange},"metadata":{"name":${json(word)}},"spec":{${strange},"cidrs":["172.30.0.0/16"]}}`,
    ],
  };
}

function snapshotOf(word: string, isSlim: boolean): Snapshot {
  const cluster = new Cluster(word);
  const texts = clusterWith(word);
  for (const kind of kinds) {
    for (const text of texts[kind]) {
      const object: unknown = JSON.parse(text);
      cluster.upsert(kind, isSlim ? slim(kind, object) : object);
    }
  }
  return cluster.take();
}

function shown({ ipv4, ipv6, node, problems }: Snapshot): string {
  const ports = [...ipv4.ports.entries(), ...ipv6.ports.entries()];
  return JSON.stringify({ ports, cidrs: ipv4.serviceCIDRs, node, problems });
}

const legal = hostile.filter((word) => word !== "__proto__");

it.each(legal.flatMap((word) => [[word, true] as const, [word, false] as const]))(
  "security/1: %s as name, key and value of every field means what any other word means (slim: %s)",
  (word, isSlim) => {
    const [theirs, ours] = [snapshotOf(word, isSlim), snapshotOf(neutral, isSlim)];
    expect(shown(theirs).replaceAll(word, neutral)).toBe(shown(ours));
    expect(ours.ipv4.ports.size).toBe(1);
    expect("polluted" in {}).toBe(false);
  },
);

it.each([true, false])(
  "security/1: __proto__ is no legal name, and no prototype either (slim: %s)",
  (isSlim) => {
    const { ipv4, problems } = snapshotOf("__proto__", isSlim);
    expect(ipv4.ports.size).toBe(0);
    expect(problems.map(({ kind }) => kind)).toContain("invalid-name");
    expect("polluted" in {}).toBe(false);
  },
);
