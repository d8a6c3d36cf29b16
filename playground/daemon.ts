// The proxy of one node: runs `turnout run` in the namespace of the node and reads its log.

import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type Server, type Socket } from "node:net";
import { milliseconds, parseDuration } from "../src/config/units/duration.ts";
import { namespaceName } from "../src/inspect/playgrounds.ts";
import { environmentOf } from "../src/model/environment.ts";
import { CannotStart } from "./cannot-start.ts";

/** One Sync, read from the log of the daemon. */
export type SyncReport = {
  readonly node: string;
  readonly family: string;
  readonly trigger: string;
  readonly ms: number;
  readonly changedPorts: number;
  readonly operations: number;
};

export type DaemonOptions = {
  readonly node: string;
  readonly mode: string;
  /** The command line of this program: `node`, its options, `turnout.cjs`. */
  readonly program: readonly string[];
  readonly statusSocket: string;
  /** For the API server as the node reaches it. */
  readonly kubeconfig: string;
  /** A socket that listens inside the node, at the address in its kubeconfig. */
  readonly listening: number;
  /** Connections to the API server from inside the node. */
  readonly onConnection: (connection: Socket) => void;
  readonly onSync: (report: SyncReport) => void;
  /** The daemon exited unexpectedly and is restarted; `lastError` may be empty. */
  readonly onExit: (lastError: string) => void;
};

/** What the daemons count. */
export const traffic = "endpoints";

/** Shorter than in a cluster. */
const restartMs = 1_000;

export class NodeDaemon {
  readonly #options: DaemonOptions;
  readonly #apiListener: Server;
  #child: ChildProcess;
  #restartTimer: NodeJS.Timeout | undefined;
  #stopping = false;
  #isReady = false;
  #firstSync: () => void = () => {};
  #failed: (error: CannotStart) => void = () => {};
  readonly #ready: Promise<void>;

  constructor(options: DaemonOptions) {
    this.#options = options;
    this.#ready = new Promise((resolve, reject) => {
      this.#firstSync = resolve;
      this.#failed = reject;
    });
    this.#ready.catch(() => {});
    this.#apiListener = createServer(options.onConnection);
    this.#apiListener.listen({ fd: options.listening });
    this.#child = this.#start();
  }

  /** Resolves after the first Sync; rejects when the daemon exits before it. */
  ready(): Promise<void> {
    return this.#ready;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#restartTimer);
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill("SIGTERM");
      const killTimer = setTimeout(() => this.#child.kill("SIGKILL"), 2_000);
      await ended;
      clearTimeout(killTimer);
    }
    this.#apiListener.close();
  }

  #start(): ChildProcess {
    const { node, mode, program, statusSocket, kubeconfig } = this.#options;
    const command = [
      ...program,
      "run",
      `--kubeconfig=${kubeconfig}`,
      `--hostname-override=${node}`,
      `--mode=${mode}`,
      `--status-socket=${statusSocket}`,
      `--traffic=${traffic}`,
      "--detect-local-mode=NodeCIDR",
      // Conntrack limits are settings of the whole machine.
      "--conntrack-max-per-core=0",
      "--conntrack-min=0",
      // Interactive use: sync without batching changes for a second, and check for drift often.
      ...["iptables", "ipvs"].flatMap((block) => [
        `--${block}-min-sync-period=50ms`,
        `--${block}-sync-period=3s`,
      ]),
      "--logging-format=json",
      "-v=2",
    ];
    const child = spawn("ip", ["netns", "exec", namespaceName(node), ...command], {
      stdio: ["ignore", "pipe", "pipe"],
      env: environmentOf(process.env),
      // Ctrl-C must not reach the daemons: they are stopped in order.
      detached: true,
    });
    let last = "";
    for (const stream of [child.stdout, child.stderr]) {
      let rest = "";
      stream.setEncoding("utf8");
      stream.on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          if (!this.#reportSync(line)) last = errorIn(line) ?? last;
        }
      });
    }
    child.once("exit", () => {
      this.#failed(new CannotStart(`cannot run ${mode} mode on this machine: ${last}`));
      if (!this.#isReady || this.#stopping) return;
      this.#options.onExit(last);
      this.#restartTimer = setTimeout(() => {
        this.#child = this.#start();
      }, restartMs);
    });
    return child;
  }

  #reportSync(line: string): boolean {
    const report = syncIn(line, this.#options.node);
    if (report === null) return false;
    this.#options.onSync(report);
    this.#isReady = true;
    this.#firstSync();
    return true;
  }
}

/** The Sync that a log line reports; null for other lines. */
export function syncIn(line: string, node: string): SyncReport | null {
  const entry = parsed(line);
  if (entry?.msg !== "Synced") return null;
  const number = (value: unknown) => (typeof value === "number" ? value : 0);
  const duration = parseDuration(String(entry.duration));
  return {
    node,
    family: String(entry.family),
    trigger: String(entry.trigger),
    ms: duration.ok ? milliseconds(duration.value) : 0,
    changedPorts: number(entry.changedPorts),
    operations: number(entry.operations),
  };
}

/** The error of a log entry, or null. A line that is not JSON is an error itself. */
function errorIn(line: string): string | null {
  const entry = parsed(line);
  if (entry === null) return line;
  return typeof entry.err === "string" ? entry.err : null;
}

function parsed(line: string): Readonly<Record<string, unknown>> | null {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
}
