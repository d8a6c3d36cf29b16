// Answers of the status socket while the daemon starts: its identity, what it waits for, and the state of the Source.
import { writeConfig } from "../../config/file/write.ts";
import { quoted } from "../../model/problem.ts";
import { systemClock } from "../../observe/clock.ts";
import { noHistory } from "../../observe/history/off.ts";
import type { Log } from "../../observe/log/log.ts";
import type { Answering } from "../../observe/status/socket.ts";
import { keepStatus, networkNamespace, type StatusFacts, type Wait } from "../../observe/status/status.ts";
import { type SourceSpec, sourceText } from "../../sources/index.ts";
import type { Source } from "../../sources/source.ts";
import type { ReportWait } from "../../sources/wait-for-node.ts";
import type { DaemonOptions } from "../daemon.ts";
import { logWait } from "./start-log.ts";

export class StartUpStatus {
  readonly facts: StatusFacts;
  readonly answering: Answering;
  #source: Source | null = null;
  readonly #log: Log;
  #wait: Wait = waitFor("the Source to open");

  constructor({ config, version, traffic = "off" }: DaemonOptions, spec: SourceSpec, node: string, log: Log) {
    this.#log = log;
    const namespace = networkNamespace();
    this.facts = {
      pid: process.pid,
      version,
      node,
      mode: config.mode,
      families: [],
      source: sourceText(spec),
      ownership: "plain",
      startedAt: systemClock.wall(),
      ...(namespace === undefined ? {} : { networkNamespace: namespace }),
      ...(traffic === "off" ? {} : { traffic }),
    };
    const { status } = keepStatus(this.facts, {
      source: () => this.#source?.status() ?? { synced: false, resources: {} },
      configuration: () => writeConfig(config),
      problems: () => [],
      waits: () => this.#wait,
      now: () => systemClock.wall(),
    });
    this.answering = {
      "/": status,
      "/relays": () => ({}),
      "/view": () => null,
      "/traffic": () => null,
      "/cluster": () => [null],
      "/history": () => [noHistory(node)],
    };
  }

  opened(source: Source): void {
    this.#source = source;
  }

  readonly waitsForNode: ReportWait = (what, withinMs) => {
    const node = `Node ${quoted(this.facts.node)}`;
    const texts = {
      node: `the first answer about ${node} from ${this.facts.source}`,
      addresses: `${node} to exist and have an address`,
      podCIDRs: `podCIDRs of ${node}`,
    };
    this.#wait = waitFor(texts[what], withinMs);
    logWait(texts[what], withinMs, this.#log);
  };

  readonly foundNode = (): void => {
    this.#wait = waitFor(`the machine to be ready for ${this.facts.mode} mode`);
  };
}

export function waitFor(what: string, withinMs: number | null = null): Wait {
  const since = systemClock.wall();
  return { for: what, since, until: withinMs === null ? null : since + withinMs };
}
