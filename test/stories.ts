// Reads steps.yaml: stories for what one packet cannot show, such as affinity, changes and established flows.
import { parse as parseYaml } from "yaml";
import { dualStack, type KubeObject, referenceObjects } from "./cluster.ts";
import { outsideAddresses } from "./places.ts";
import { type ModeName, readObjects, readText, type Scenario } from "./scenarios.ts";

export type Story = {
  readonly scenario: string;
  readonly name: string;
  /** Rows of docs/spec/12 that it proves. */
  readonly rows: readonly string[];
  readonly modes: readonly ModeName[];
  /** Programs it is about; kube-proxy does not keep every promise of ours. */
  readonly programs: readonly ("turnout" | "kube-proxy")[];
  readonly steps: readonly Step[];
};

/** Addresses and endpoints are written for IPv4; every step runs in both families in parallel. */
export type Step =
  | { readonly send: Send }
  /** Is sent again until it goes as written. */
  | { readonly eventually: Send }
  | { readonly sleep: number }
  | { readonly change: Change }
  | { readonly restart: true }
  | {
      readonly open: {
        readonly as: string;
        readonly from: string;
        readonly to: string;
        readonly reach?: string;
      };
    }
  | {
      readonly talk: { readonly as: string } & (
        | { readonly reach: string }
        /** no endpoint: none responds, with or without a refusal. */
        | { readonly meets: "reject" | "silence" | "no endpoint" }
      );
    }
  | { readonly get: { readonly from: string; readonly at: string; readonly status: number | null } }
  | { readonly inject: { readonly from: string; readonly to: string; readonly arrives: boolean } }
  | { readonly inputPolicy: "ACCEPT" | "DROP" }
  /** Another program removes every rule on the node. */
  | { readonly flush: true };

/** New connections, and what must be so of the endpoints they reach. */
export type Send = {
  /** An address; `clients`: sixteen outside clients, each of which counts as one sender. */
  readonly from: string;
  readonly to: string;
  /** Connections of each sender; 1 by default. */
  readonly times?: number;
  /** All reach one of these, and each of these is reached. */
  readonly reach?: readonly string[];
  /** Each sender reaches one endpoint only: the one it had under this name, if it had one. */
  readonly same?: string;
  /** The senders do not all have the endpoints they had under this name. */
  readonly differs?: string;
  /** Not all senders reach the same endpoint. */
  readonly spread?: true;
  /** This many endpoints are reached, with an even distribution. */
  readonly uniform?: number;
  /** The source ports at the endpoints are unrelated to those of the senders. */
  readonly randomPorts?: true;
};

/** `Service/web` or `EndpointSlice/web-1` → fields to put in; null removes the object. */
export type Change = Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;

/** The sixteen outside clients of `from: clients`. */
export const clients: readonly string[] = outsideAddresses.slice(2);

export function readStories(scenario: string): Story[] {
  const written = (parseYaml(readText(scenario, "steps.yaml")) ?? []) as Partial<Story>[];
  return written.map(({ name = "", rows = [], steps = [], ...about }) => {
    const { modes = ["nftables", "iptables"], programs = ["turnout", "kube-proxy"] } = about;
    const unknown = steps.flatMap(Object.keys).find((kind) => !stepKinds.includes(kind));
    if (unknown !== undefined) throw new Error(`Cannot read ${scenario}/steps.yaml: ${unknown} is no step`);
    return { scenario, name, rows, modes, programs, steps };
  });
}

/** The objects of a scenario after these changes, in both families. */
export function changedObjects({ name }: Pick<Scenario, "name">, changes: readonly Change[]): KubeObject[] {
  const own = readObjects(name, "cluster.yaml").flatMap((object) => {
    const key = `${object.kind}/${object.metadata.name}`;
    const fields = changes.map((change) => change[key]).filter((patch) => patch !== undefined);
    if (fields.some((patch) => patch === null)) return [];
    return fields.reduce<KubeObject>((before, patch) => merged(before, patch!) as KubeObject, object);
  });
  const both = own.flatMap(dualStack);
  return [...referenceObjects(both), ...both];
}

const stepKinds = [
  "send",
  "eventually",
  "sleep",
  "change",
  "restart",
  "open",
  "talk",
  "get",
  "inject",
  "inputPolicy",
  "flush",
];

function merged(before: unknown, patch: unknown): unknown {
  if (!isObject(before) || !isObject(patch)) return patch;
  const fields = Object.entries(patch).map(([key, value]) => [key, merged(before[key], value)]);
  return { ...before, ...Object.fromEntries(fields) };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
