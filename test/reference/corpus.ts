// The recorded corpus: cluster states with what the real kube-proxy's iptables mode made of them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type Case, largeSeed } from "./cases.ts";
import type { Rules } from "./record.ts";

/** One line of the corpus, JSON: `zcat corpus.jsonl.gz | jq` shows it. */
export type Recorded = Case & { readonly rules: Rules };

export const corpusSeeds: readonly number[] = [...Array.from({ length: 80 }, (_, i) => i + 1), largeSeed];

const root = process.env.TURNOUT_ROOT ?? process.cwd();

export const corpusFile = join(root, "test", "golden", "iptables", "corpus.jsonl.gz");

export function readCorpus(): readonly Recorded[] {
  const text = gunzipSync(readFileSync(corpusFile)).toString("utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Recorded);
}

export function corpusLine(recorded: Recorded): string {
  const rules = Object.fromEntries(
    Object.entries(recorded.rules).map(([command, text]) => [command, withoutCounters(text)]),
  );
  return JSON.stringify({ ...recorded, rules });
}

/** Save files carry the time and the packet counts of the moment. */
function withoutCounters(text: string): string {
  return text
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .map((line) => line.replace(/ \[\d+:\d+\]$/, " [0:0]"))
    .join("\n");
}
