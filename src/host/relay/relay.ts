// What the TCP and UDP relays have in common: where they listen, how they choose, what they report.
import { HostError } from "../error.ts";
import type { RelayBackend } from "./balancer.ts";
import type { FdBudget } from "./fd-budget.ts";

export type RelayOptions = {
  readonly host: string;
  /** 0: the kernel chooses. */
  readonly port: number;
  /** null: there is no endpoint. `attempt` counts from 0 within one connection. */
  readonly choose: (client: string, attempt: number) => RelayBackend | null;
  /** Connections, or clients of a UDP relay, at the same time; more are turned away. */
  readonly limit: number;
  /** The file descriptors shared by all relays. */
  readonly room: FdBudget;
  /** Once for each connection, or client of a UDP relay. `to`: who got it. */
  readonly onOutcome?: (outcome: "forwarded" | "failed", to: RelayBackend | null) => void;
};

export type Relay = {
  readonly port: number;
  /** How many connections, or clients, are open. */
  readonly open: () => number;
  /** Whether traffic no longer reaches it because the kernel aborted its socket. `tcp`: ports with a listener. */
  readonly hasLostListener: (tcp: ReadonlySet<number>) => boolean;
  /** Drops clients of a UDP relay whose backend is gone: their next datagram goes to another. TCP connections continue. */
  readonly retain: (isStill: (backend: RelayBackend) => boolean) => void;
  /** Stops listening; with `cut`, open connections are closed as well. UDP clients are always dropped. */
  readonly close: (cut: boolean) => Promise<void>;
};

/** Why a socket could not be opened, in one sentence. */
export function cannotListen(
  what: string,
  { host, port }: Pick<RelayOptions, "host" | "port">,
  cause: unknown,
): HostError {
  const errno = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const why = errno === "EADDRINUSE" ? "another program listens there" : errno;
  return new HostError("unavailable", `Cannot listen on ${what} ${host} port ${port}: ${why}`, {
    cause,
    errno,
  });
}
