// Which TCP ports have a listener: a socket that the kernel aborted (`ss -K`) reports no error.
import { closeSync, openSync, readSync } from "node:fs";
import type { Family } from "../../model/address.ts";

const listings = { ipv4: "/proc/self/net/tcp", ipv6: "/proc/self/net/tcp6" } as const satisfies Record<
  Family,
  string
>;

/**
 * null: the kernel does not provide them. Sockets that open and close during the dump may hide others: two dumps hardly ever miss
 * the same one.
 */
export function listeningPorts(family: Family): ReadonlySet<number> | null {
  const [first, second] = [listed(family), listed(family)];
  return first === null || second === null ? null : new Set([...first, ...second]);
}

function listed(family: Family): readonly number[] | null {
  let file: number;
  try {
    file = openSync(listings[family], "r");
  } catch {
    return null;
  }
  try {
    return [...portsIn(linesOf(file))];
  } finally {
    closeSync(file);
  }
}

/** The line of a socket: its number, address and port, those of its peer, its state. */
const socketLine = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) \S+ ([0-9A-F]{2}) /;
const isListening = "0A";

/** Listeners are first: the rest, perhaps thousands of connections, is not read. */
function* portsIn(lines: Iterable<string>): Generator<number> {
  for (const line of lines) {
    const [, port, state] = socketLine.exec(line) ?? [];
    if (port === undefined) continue;
    if (state !== isListening) return;
    yield Number.parseInt(port, 16);
  }
}

function* linesOf(file: number): Generator<string> {
  const chunk = Buffer.alloc(1 << 16);
  let rest = "";
  for (let length = readSync(file, chunk); length > 0; length = readSync(file, chunk)) {
    const lines = (rest + chunk.toString("latin1", 0, length)).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}
