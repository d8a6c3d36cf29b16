// Flags that several commands share: which cluster, which node, with which configuration.
import { modeNames } from "../inspect/target-config.ts";
import { defaultStatusSocket } from "../observe/status/status.ts";
import type { Flag } from "./flags.ts";
import { momentExamples } from "./moment.ts";

export const sources = ["files:", "kubeconfig:", "api", "playground", "daemon"] as const;

export const sourceFlag = {
  name: "source",
  value: "SOURCE",
  suggestions: sources,
  example: "files:examples/shop",
  fallback: "daemon",
  description:
    "where cluster state comes from: files:PATH[,PATH…], kubeconfig:PATH, api, a URL, playground (the one running on this machine) or daemon[:SOCKET] (the daemon running on this machine, with its node and configuration)",
} as const satisfies Flag;

export const nodeFlag = {
  name: "node",
  value: "NAME",
  suggestions: ["node-a", "node-b"],
  example: "node-a",
  description:
    "the node for which rules are computed; its Node object provides addresses, pod networks and zone",
} as const satisfies Flag;

export const namespaceFlag = {
  name: "namespace",
  short: "n",
  value: "NAME",
  example: "shop",
  description: "namespace of a pod or Service whose name has none; without it the name must be unique",
} as const satisfies Flag;

export const clusterCidrFlag = {
  name: "cluster-cidr",
  value: "CIDR",
  example: "10.0.0.0/8",
  description: "network of all pods; overrides the configuration",
} as const satisfies Flag;

export const outputFlag = {
  name: "output",
  short: "o",
  value: "FORMAT",
  choices: ["text", "json"],
  example: "json",
  fallback: "text",
  description: "output format",
} as const satisfies Flag;

/** Of commands that only a daemon can answer. */
export const daemonSourceFlag = {
  name: "source",
  value: "SOURCE",
  suggestions: ["daemon", "playground"],
  example: "playground",
  fallback: "daemon",
  description: `daemon: the one that serves ${defaultStatusSocket}; daemon:SOCKET: another one; playground: a node of the playground running on this machine`,
} as const satisfies Flag;

export const daemonNodeFlag = {
  ...nodeFlag,
  fallback: "node-a",
  description: "node of the playground",
} as const satisfies Flag;

/** A moment of the past. */
export const atFlag = {
  name: "at",
  value: "TIME",
  example: "10:41",
  description: `the cluster as it was then, from the history of the daemon: ${momentExamples}; times without a zone are local`,
} as const satisfies Flag;

/** Flags of the commands that compute the Routes of a node. */
export const targetFlags = [
  sourceFlag,
  {
    name: "fresh",
    description: "read the API or the files directly instead of the daemon's copy",
    aliases: ["anew"],
  },
  nodeFlag,
  {
    name: "config",
    value: "FILE",
    example: "/var/lib/kube-proxy/config.conf",
    description:
      "KubeProxyConfiguration to use instead of the daemon's; without either, the defaults apply and the Node's podCIDRs identify local pods",
  },
  {
    name: "mode",
    value: "MODE",
    choices: modeNames,
    example: "nftables",
    description: "proxy mode; overrides the configuration",
  },
  clusterCidrFlag,
] as const satisfies readonly Flag[];
