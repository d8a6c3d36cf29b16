// Clusters that change all the time around one Service that never does; same seed and step, same cluster.
import type { Endpoint, ServicePort } from "../../src/model/snapshot.ts";
import { endpoint, servicePort } from "../support/routed.ts";

/** The parameters of `churn-process.ts`. */
export type ChurnOrder = { readonly netns: string; readonly seed: number; readonly owned: boolean };

/** The Service that stays: UDP, so that no lost packet is sent again. */
export const keptFrontend = { address: "172.30.0.200", port: 80, protocol: "udp" } as const;

export function churned(seed: number, step: number): ServicePort[] {
  const kept = servicePort("steady/kept", {
    protocol: "udp",
    clusterIP: keptFrontend.address,
    endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.1.1:8080")],
  });
  const random = generator(seed * 7919 + step);
  return [kept, ...Array.from({ length: 200 }, (_, i) => moving(i, random)).filter(() => random() > 0.2)];
}

function moving(i: number, random: () => number): ServicePort {
  const endpoints: Endpoint[] = Array.from({ length: Math.floor(random() * 8) }, (_, j) =>
    endpoint(`10.180.${j % 2}.${20 + Math.floor(random() * 6) * 8 + j}:${8000 + (i % 3)}`),
  );
  return servicePort(`moving/s${i}`, {
    clusterIP: `172.30.1.${i}`,
    protocol: i % 3 === 0 ? "udp" : "tcp",
    nodePort: random() < 0.3 ? 30_000 + i : 0,
    affinity: random() < 0.1 ? { seconds: 60 } : null,
    externalPolicy: random() < 0.5 ? "local" : "cluster",
    loadBalancerIPs: random() < 0.2 ? [`198.51.100.${i}`] : [],
    sourceRanges: random() < 0.5 ? ["203.0.113.0/25"] : [],
    endpoints,
  });
}

/** A small linear congruential generator: enough for chance, and the same everywhere. */
function generator(seed: number): () => number {
  let state = (seed * 2654435761) >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
