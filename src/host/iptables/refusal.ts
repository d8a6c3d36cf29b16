// Interprets a failure of `iptables-restore`: the line, the Service, and the message.
import type { PortKey } from "../../model/snapshot.ts";
import type { InputLine } from "../../plan/iptables/print.ts";
import { HostError, type HostErrorKind } from "../error.ts";
import type { Finished } from "./command.ts";

/** A restore that failed. Tables before the refused one are in force; the refused one is unchanged. */
export class RestoreFailed extends HostError {
  /** Input around the offending line, with line numbers; empty when no line is named. */
  readonly context: readonly string[];
  /** The offending line; empty when no line is named. */
  readonly line: string;
  /** The ServicePorts whose lines were refused; empty: none, or unknown. */
  readonly owners: readonly PortKey[];

  constructor(
    kind: HostErrorKind,
    message: string,
    text: string,
    context: readonly string[],
    owners: readonly PortKey[],
    line = "",
  ) {
    super(kind, message, { text, ofRules: true });
    this.name = "RestoreFailed";
    this.context = context;
    this.owners = owners;
    this.line = line;
  }
}

/** `lines` returns the refused input; called only when the message names a line. */
export function restoreFailure(
  program: string,
  { code, stderr }: Finished,
  lines: () => readonly InputLine[],
): RestoreFailed {
  const reason = stderr.trim().replace(/\s*\n\s*/g, "; ");
  const end = code === null ? "was killed" : `exited with ${code}`;
  const named = refusedLine(stderr);
  const input = named === null ? [] : lines();
  const at = named === null ? -1 : offendingLine(named, stderr, input);
  const line = input[at];
  const owners = line === undefined ? [] : ownersOf(line, stderr, input);
  const what = line === undefined ? "" : ` at line ${at + 1}, \`${line.text}\`${ownersText(owners)}`;
  const message = `Cannot restore tables: ${program} ${end}${what}: ${reason === "" ? "no message" : reason}`;
  return new RestoreFailed(kindOf(code, stderr), message, reason, around(input, at), owners, line?.text);
}

/** Both back ends name a line, in several phrases: `line 7 failed`, `line 7: RULE_APPEND failed`, `Error occurred at line: 7`. */
export function refusedLine(stderr: string): number | null {
  const found = /line[: ]+(\d+)/.exec(stderr);
  return found === null ? null : Number(found[1]);
}

/** Index of the line. nf_tables detects a jump to a missing chain only at the end of the table, but names the chain. */
function offendingLine(named: number, stderr: string, input: readonly InputLine[]): number {
  const nowhere = /Chain '(.*)' does not exist/.exec(stderr)?.[1];
  const jump = nowhere === undefined ? -1 : input.findIndex(({ text }) => text.endsWith(` -j ${nowhere}`));
  return jump < 0 ? named - 1 : jump;
}

/** Exit status 4 without a line is the lock, or memory: nothing was processed. */
function kindOf(code: number | null, stderr: string): HostErrorKind {
  if (code === null) return "lost";
  return isLockHeld(code, stderr) ? "unavailable" : "refused";
}

export function isLockHeld(code: number | null, stderr: string): boolean {
  return code === 4 && refusedLine(stderr) === null;
}

/**
 * Whose line it is. The legacy back end names the end of the table when the kernel lacks a match or a target; then
 * all ServicePorts that use it are meant, unless our fixed rules use it too.
 */
function ownersOf(line: InputLine, stderr: string, input: readonly InputLine[]): readonly PortKey[] {
  if (line.owner !== null) return [line.owner];
  const missing = [...stderr.matchAll(/Extension (\S+) .*missing kernel module/g)].map(([, name]) => name!);
  const users = input.filter(({ text }) =>
    missing.some((name) => text.includes(` -m ${name} `) || text.includes(` -j ${name}`)),
  );
  const owners = users.map(({ owner }) => owner);
  return owners.includes(null) ? [] : [...new Set(owners as readonly PortKey[])];
}

function ownersText([first, ...others]: readonly PortKey[]): string {
  if (first === undefined) return "";
  const name = first.split("/").slice(0, 2).join("/");
  return ` (Service ${name}${others.length === 0 ? "" : ` and ${others.length} more`})`;
}

function around(input: readonly InputLine[], at: number): string[] {
  if (at < 0) return [];
  const first = Math.max(0, at - 3);
  return input.slice(first, at + 4).map(({ text }, i) => `${first + i + 1}: ${text}`);
}
