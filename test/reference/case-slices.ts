// The EndpointSlices of a generated Service: which places answer, in which state, with which hints.
import type { Family } from "../../src/model/address.ts";
import { nodeName, otherNodeName } from "../places.ts";
import type { Port } from "./case-services.ts";
import type { KubeObject } from "./objects.ts";
import {
  addressOf,
  type EndpointPlace,
  hostEndpoint,
  localPods,
  remotePods,
  serverPorts,
  zones,
} from "./places.ts";
import type { Random } from "./random.ts";

type Owner = {
  readonly name: string;
  readonly namespace: string;
  readonly families: readonly Family[];
  readonly ports: readonly Port[];
};

export function slicesFor(random: Random, owner: Owner): readonly KubeObject[] {
  const places = choosePlaces(random);
  const conditions = random.one<Mix>(["ready", "ready", "ready", "mixed", "mixed", "ending", "down"]);
  const hints = random.one<Hints>(["none", "none", "none", "zones", "nodes", "some"]);
  const endpoints = places.map(({ place, node }) => ({
    place,
    ...(random.chance(0.05) ? {} : { nodeName: node }),
    ...conditionsOf(random, conditions),
    ...hintsOf(random, hints),
  }));
  // A second slice may carry another target number for the same port name, as rolling updates do.
  const parts = random.chance(0.25) ? [endpoints.slice(0, 1), endpoints.slice(1)] : [endpoints];
  const targets = owner.ports.map(({ protocol }) => random.one<number>(serverPorts[protocol]));
  return owner.families.flatMap((family) =>
    parts.map((part, i) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: `${owner.name}-${family}-${i}`,
        namespace: owner.namespace,
        labels: { "kubernetes.io/service-name": owner.name },
      },
      addressType: family === "ipv4" ? "IPv4" : "IPv6",
      ports: owner.ports.map(({ name = "", protocol }, at) => ({
        name,
        protocol,
        port: i === 0 ? targets[at]! : serverPorts[protocol][0],
      })),
      endpoints: part.map(({ place, ...rest }) => ({ addresses: [addressOf(place, family)], ...rest })),
    })),
  );
}

type Mix = "ready" | "mixed" | "ending" | "down";
type Hints = "none" | "zones" | "nodes" | "some";

function choosePlaces(random: Random): readonly EndpointPlace[] {
  const all = random.chance(0.15)
    ? [hostEndpoint, ...localPods, ...remotePods]
    : [...localPods, ...remotePods];
  return random.one([
    () => [],
    () => random.sample(localPods, 1),
    () => random.sample(remotePods, 2),
    () => random.sample(all, 2),
    () => random.sample(all, 3),
    () => random.sample(all, all.length),
  ])();
}

function conditionsOf(random: Random, mix: Mix): object {
  const ready = { ready: true, serving: true, terminating: false };
  const draining = { ready: false, serving: true, terminating: true };
  const ended = { ready: false, serving: false, terminating: true };
  const unready = { ready: false, serving: false, terminating: false };
  const choices: Record<Mix, readonly object[]> = {
    ready: [ready],
    mixed: [ready, ready, draining, unready, ended, {}],
    ending: [draining, draining, ended],
    down: [unready, ended],
  };
  return { conditions: random.one(choices[mix]) };
}

function hintsOf(random: Random, hints: Hints): object {
  if (hints === "none" || (hints === "some" && random.chance(0.4))) return {};
  const forZones = random.sample(zones, random.between(1, 2)).map((name) => ({ name }));
  const forNodes = random.sample([nodeName, otherNodeName], random.between(1, 2)).map((name) => ({ name }));
  return {
    hints: hints === "nodes" ? { forNodes, ...(random.chance(0.5) ? { forZones } : {}) } : { forZones },
  };
}
