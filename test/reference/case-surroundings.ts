// What is around the generated Services: the Node with or without a zone, and the networks of Services.
import { families } from "../../src/model/address.ts";
import { nodeName, serviceNetwork, twin } from "../places.ts";
import type { KubeObject } from "./objects.ts";
import { addressOf, podCIDRs, serviceCIDRs, zones } from "./places.ts";
import { type Random, seeded } from "./random.ts";

/** The Node's zone and the ServiceCIDRs are choices of the state, the Node's addresses are not. */
export function surroundings(seed: number): readonly KubeObject[] {
  const random = seeded(seed ^ 0x20de);
  const labels = { ...(random.chance(0.85) ? { "topology.kubernetes.io/zone": random.one(zones) } : {}) };
  return [
    {
      apiVersion: "v1",
      kind: "Node",
      metadata: { name: nodeName, labels: { "kubernetes.io/hostname": nodeName, ...labels } },
      spec: { podCIDR: podCIDRs[0], podCIDRs },
      status: {
        addresses: families.map((family) => ({ type: "InternalIP", address: addressOf("host", family) })),
      },
    },
    ...networks(random),
  ];
}

function networks(random: Random): readonly KubeObject[] {
  const narrow = serviceNetwork.replace("/16", "/24");
  const choices: readonly Readonly<Record<string, readonly string[]>>[] = [
    { kubernetes: serviceCIDRs },
    { kubernetes: serviceCIDRs },
    { kubernetes: serviceCIDRs },
    { kubernetes: [serviceNetwork] },
    { kubernetes: [narrow, twin(narrow)] },
    { kubernetes: [narrow], more: [serviceNetwork, twin(serviceNetwork)] },
  ];
  return Object.entries(random.one(choices)).map(([name, cidrs]) => ({
    apiVersion: "networking.k8s.io/v1",
    kind: "ServiceCIDR",
    metadata: { name },
    spec: { cidrs },
  }));
}
