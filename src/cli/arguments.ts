// The arguments of our own commands: flags with a value, switches, and words. What is mistyped is answered by an example.

import { closest } from "../config/closest.ts";
import { UsageError } from "../inspect/usage-error.ts";
import type { OwnFlags } from "./own-flags.ts";

export type Allowed = {
  readonly flags: readonly string[];
  /** Flags without a value. */
  readonly switches?: readonly string[];
  /** How many words there may be, and what to say when there are more. */
  readonly words?: { readonly most: number; readonly instead: string };
};

export type Arguments = {
  readonly given: OwnFlags;
  readonly on: ReadonlySet<string>;
  readonly words: readonly string[];
  readonly help: boolean;
};

/** Flags as `--name=value`, `--name value`, `-o json` or `-ojson`; the last one wins. After `--` come words alone. */
export function readArguments(argv: readonly string[], allowed: Allowed): Arguments {
  const { flags, switches = [], words: { most, instead } = nothing } = allowed;
  if (argv.some((argument) => argument === "--help" || argument === "-h"))
    return { given: {}, on: new Set(), words: [], help: true };
  const given: Record<string, string> = {};
  const on = new Set<string>();
  const words: string[] = [];
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
  for (let i = 0; i < end; i++) {
    const argument = argv[i]!;
    const [, name, value] = /^--?([a-z][a-z-]*)(?:=([\s\S]*))?$/i.exec(spelledOut(argument)) ?? [];
    if (name === undefined) words.push(argument);
    else if (switches.includes(name) && value === undefined) on.add(name);
    else if (!flags.includes(name)) throw new UsageError(noFlag(argument, name, [...flags, ...switches]));
    else if (value !== undefined) given[name] = value;
    else {
      const next = argv[++i];
      if (next === undefined || i >= end || next.startsWith("--")) throw new UsageError(noValue(name));
      given[name] = next;
    }
  }
  words.push(...argv.slice(end + 1));
  if (words.length > most) throw new UsageError(`cannot use ${JSON.stringify(words[most])}; ${instead}`);
  return { given, on, words, help: false };
}

const nothing = { most: 0, instead: "--help shows what can be said" };

/** `-ojson` is `-o=json`. */
function spelledOut(argument: string): string {
  return argument.replace(/^-o(?=[a-z])(?!utput\b)/, "-o=");
}

function noFlag(argument: string, name: string, known: readonly string[]): string {
  const near = closest(name, known);
  const hint =
    near === null || name.length === 1 ? "--help shows what can be said" : `did you mean --${near}?`;
  return `cannot use ${JSON.stringify(argument)}; ${hint}`;
}

const examples: Readonly<Record<string, string>> = {
  source: "files:examples/shop",
  node: "node-a",
  against: "files:new.yaml",
  mode: "nftables",
  config: "/var/lib/kube-proxy/config.conf",
  "cluster-cidr": "10.0.0.0/8",
  from: "ipvs",
  to: "nftables",
  o: "json",
  output: "json",
  port: "7443",
  script: "commands.txt",
  manifests: "shop.yaml",
};

function noValue(name: string): string {
  const flag = name.length === 1 ? `-${name} ${examples[name]}` : `--${name}=${examples[name]}`;
  return `${name.length === 1 ? "-" : "--"}${name} needs a value, for example ${flag}`;
}
