// The recorded corpora: cluster states with what the real kube-proxy made of them, in iptables and in ipvs mode.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { type Case, largeSeed } from "./cases.ts";
import type { IpvsCase } from "./ipvs-cases.ts";
import type { Rules } from "./record.ts";

/** One line of a corpus, JSON: `zcat corpus.jsonl.gz | jq` shows it. */
export type Recorded<C = Case> = C & { readonly rules: Rules };

export const corpusSeeds: readonly number[] = [...Array.from({ length: 80 }, (_, i) => i + 1), largeSeed];

const root = process.env.TURNOUT_ROOT ?? process.cwd();

export const corpusName = "corpus.jsonl.gz";
export const corpusFile = join(root, "test", "golden", "iptables", corpusName);
export const ipvsCorpusFolder = join(root, "test", "golden", "ipvs");

export function readCorpus(): readonly Recorded[] {
  return readFrom(corpusFile);
}

export function readIpvsCorpus(folder = ipvsCorpusFolder): readonly Recorded<IpvsCase>[] {
  return readFrom(join(folder, corpusName));
}

/** Puts one state into the corpus, in place of what was recorded for its seed. */
export function recordIpvs(folder: string, recorded: Recorded<IpvsCase>): void {
  const others = existsSync(join(folder, corpusName)) ? readIpvsCorpus(folder) : [];
  const all = [...others.filter(({ seed }) => seed !== recorded.seed), recorded];
  writeCorpus(
    join(folder, corpusName),
    all.sort((a, b) => a.seed - b.seed),
  );
}

export function writeCorpus(file: string, corpus: readonly Recorded<{ readonly seed: number }>[]): void {
  writeFileSync(file, gzipSync(`${corpus.map(corpusLine).join("\n")}\n`, { level: 9 }));
}

function readFrom<C>(file: string): readonly Recorded<C>[] {
  const text = gunzipSync(readFileSync(file)).toString("utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Recorded<C>);
}

function corpusLine(recorded: Recorded<object>): string {
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
