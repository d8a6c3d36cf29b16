// The daemon behind kube-proxy and `turnout run`.
import type { ValidConfig } from "../config/config.ts";
import type { ResolvedGates } from "../config/gates.ts";
import type { OpenLog } from "../observe/log/log.ts";
import type { WatchedFile } from "./config-file.ts";

export type DaemonOptions = {
  readonly config: ValidConfig;
  readonly gates: ResolvedGates;
  /** `--master`: URL of the API server; empty for none. */
  readonly master: string;
  readonly cleanup: boolean;
  readonly initOnly: boolean;
  /** null without `--config`. When it changes, the process ends with exit code 1. */
  readonly configFile: WatchedFile | null;
  /** Every flag with its text, for /flagz. */
  readonly flags: ReadonlyMap<string, string>;
  /** The version to report: to the API server, in metrics and on /statusz. */
  readonly version: string;
  readonly log: OpenLog;
};

/** Resolves with the exit code. */
export function runDaemon({ log }: DaemonOptions, _signal: AbortSignal): Promise<number> {
  log.log.in("cli/daemon.ts").error(new Error("this build has no daemon yet"), "Cannot run the proxy");
  return Promise.resolve(1);
}
