// The command kube-proxy: reads arguments and file into a configuration, then runs what the arguments request.
import { type Completed, completeConfig } from "../../config/complete.ts";
import type { ValidConfig } from "../../config/config.ts";
import { writeConfig } from "../../config/file/write.ts";
import { helpText, printedFlags, usageText } from "../../config/flags/help.ts";
import { readFlags } from "../../config/flags/read.ts";
import type { Given } from "../../config/flags/table.ts";
import { milliseconds } from "../../config/units/duration.ts";
import { quantityValue } from "../../config/units/quantity.ts";
import { gitVersion, rawVersion } from "../../config/version.ts";
import type { WatchedFile } from "../../daemon/config/config-file.ts";
import type { DaemonOptions } from "../../daemon/daemon.ts";
import { UsageError } from "../../inspect/usage-error.ts";
import type { Variables } from "../../model/environment.ts";
import { type LogSettings, type LogWorld, type OpenLog, openLog } from "../../observe/log/log.ts";

import { fromEnvironment, type OwnValues, ownOptions, withMode } from "../own-flags.ts";

/** What the commands require of the machine. */
export type CommandWorld = LogWorld & {
  /** Version of Turnout. */
  readonly version: string;
  readonly platform: { readonly os: string; readonly arch: string; readonly runtime: string };
  /** Columns of the terminal. */
  readonly width: number;
  /** Lines of the terminal; absent: stdout is none. */
  readonly height?: number | undefined;
  /** Makes the terminal empty; absent: stdout is none. */
  readonly clearScreen?: (() => void) | undefined;
  /** Whether stderr is a terminal. */
  readonly isTerminal?: boolean;
  readonly environment: Variables;
  readonly openConfigFile: (path: string) => Promise<WatchedFile>;
  readonly writeFile: (path: string, text: string) => Promise<void>;
  readonly runDaemon: (options: DaemonOptions, signal: AbortSignal) => Promise<number>;
  /** Why this process cannot access the kernel's network rules; null when it can. */
  readonly missingRights: () => string | null;
};

/** The program kube-proxy: kube-proxy's flags, and Turnout's own settings from the environment. */
export async function runDropIn(
  argv: readonly string[],
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const own = ownSettings(world);
  if (own instanceof UsageError) return refuse(world, own.message);
  const extra = ownOptions(own, world.version);
  const runDaemon = (options: DaemonOptions, stop: AbortSignal) =>
    world.runDaemon({ ...options, ...extra }, stop);
  return runCommand(withMode(own, argv), { ...world, runDaemon }, signal);
}

function ownSettings({ environment, version }: CommandWorld): OwnValues | UsageError {
  try {
    return fromEnvironment(environment, version);
  } catch (error) {
    if (error instanceof UsageError) return error;
    throw error;
  }
}

/** Resolves with the exit code. */
export async function runCommand(
  argv: readonly string[],
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  const read = readFlags(argv);
  if (!read.ok) {
    world.stderr(`${usageText(world.width)}\n`);
    return refuse(world, read.reason);
  }
  const { given, positional, notices } = read.value;
  for (const notice of notices) world.stderr(`${notice}\n`);
  if (given.help) return print(world, helpText(world.width));
  if (positional.some((argument) => argument !== "")) {
    return refuse(world, `"kube-proxy" does not take any arguments, got ${JSON.stringify(positional)}`);
  }
  if (given.version === "true") return print(world, `Kubernetes ${gitVersion(world.version)}\n`);
  if (given.version === "raw") return print(world, `${rawVersionOf(world)}\n`);
  if (world.platform.os === "win32") {
    return refuse(world, "this program runs on Linux: on Windows use the kube-proxy of Kubernetes");
  }
  const missing = given["write-config-to"] ? null : world.missingRights();
  if (missing !== null) return refuse(world, `cannot start: ${missing}`);
  return runWith(given, world, signal);
}

async function runWith(given: Given, world: CommandWorld, signal: AbortSignal): Promise<number> {
  const early = openLog(plainLog, world);
  const file = given.config ? await opened(given.config, world) : null;
  if (file instanceof Error) return fail(early, [], file);
  try {
    const completed = completeConfig(given, file === null ? null : { name: file.path, text: file.text });
    if (!completed.ok) return fail(early, completed.notices, new Error(completed.error), completed.places);
    const log = openLog(logSettings(completed.config), world);
    reportFlags(log, given);
    notify(log, completed.notices);
    const code = await act(completed, given, file, log, world, signal);
    log.flush();
    return code;
  } finally {
    await file?.close();
  }
}

function act(
  { config, gates }: Completed & { ok: true },
  given: Given,
  configFile: WatchedFile | null,
  log: OpenLog,
  world: CommandWorld,
  signal: AbortSignal,
): Promise<number> {
  if (given["write-config-to"]) return writeTo(given["write-config-to"], config, log, world);
  const options: DaemonOptions = {
    config,
    gates,
    master: given.master ?? "",
    cleanup: given.cleanup ?? false,
    initOnly: given["init-only"] ?? false,
    configFile,
    complete: (text) => completeConfig(given, { name: given.config ?? "", text }),
    flags: new Map(printedFlags(given)),
    version: given.version?.startsWith("v") ? given.version : gitVersion(world.version),
    log,
  };
  return world.runDaemon(options, signal);
}

async function writeTo(
  path: string,
  config: ValidConfig,
  log: OpenLog,
  world: CommandWorld,
): Promise<number> {
  try {
    await world.writeFile(path, writeConfig(config));
  } catch (error) {
    return fail(log, [], new Error(`cannot write the configuration to ${path}: ${reasonOf(error)}`));
  }
  log.log.in(here).info("Wrote configuration", { file: path });
  return 0;
}

const here = "cli/commands/kube-proxy.ts";

async function opened(path: string, world: CommandWorld): Promise<WatchedFile | Error> {
  try {
    return await world.openConfigFile(path);
  } catch (error) {
    return new Error(`failed complete: cannot read the configuration file ${path}: ${reasonOf(error)}`);
  }
}

/** Before the configuration is read, everything is logged to stderr as text. */
const plainLog: LogSettings = {
  format: "text",
  verbosity: 0,
  vmodule: [],
  splitStream: false,
  infoBufferSize: 0,
  flushFrequencyMs: 5_000,
};

function logSettings({ logging }: ValidConfig): LogSettings {
  const format = logging.format === "json" ? "json" : "text";
  const { splitStream, infoBufferSize } = logging.options[format];
  return {
    format,
    verbosity: logging.verbosity,
    vmodule: logging.vmodule,
    splitStream,
    infoBufferSize: Number(quantityValue(infoBufferSize)),
    flushFrequencyMs: milliseconds(logging.flushFrequency.duration),
  };
}

function reportFlags({ log }: OpenLog, given: Given): void {
  for (const [name, value] of printedFlags(given))
    log.in(here).v(1, `FLAG: --${name}=${JSON.stringify(value)}`);
}

function notify({ log }: OpenLog, notices: readonly string[]): void {
  for (const notice of notices) log.in(here).info("Configuration accepted with a remark", { remark: notice });
}

function fail(
  log: OpenLog,
  notices: readonly string[],
  error: Error,
  places: readonly string[] = [],
): number {
  notify(log, notices);
  log.log.in(here).error(error, "command failed", places.length === 0 ? {} : { at: places.join(", ") });
  return 1;
}

function refuse(world: CommandWorld, reason: string): number {
  world.stderr(`Error: ${reason}\n`);
  return 1;
}

function print(world: CommandWorld, text: string): number {
  world.stdout(text);
  return 0;
}

function rawVersionOf({ version, platform }: CommandWorld): string {
  return rawVersion(gitVersion(version), `${platform.os}/${platform.arch}`, platform.runtime);
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : null;
  const known: Readonly<Record<string, string>> = {
    ENOENT: "no such file or directory",
    EACCES: "permission denied",
    EISDIR: "it is a directory",
  };
  return known[String(code)] ?? (error instanceof Error ? error.message : String(error));
}
