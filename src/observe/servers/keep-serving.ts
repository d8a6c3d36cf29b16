// Keeps a server up: a port that is taken is tried again every five seconds, or ends the process if so configured.
import type { Clock } from "../clock.ts";
import type { Log } from "../log/log.ts";
import type { HttpServer } from "./http.ts";

export type Serving = {
  /** Which server it is, for people: `healthz`, `metrics`. */
  readonly name: string;
  readonly address: string;
  readonly open: () => Promise<HttpServer>;
  /** `bindAddressHardFail`: called instead of trying again. */
  readonly onHardFail: ((error: Error) => void) | null;
};

export type KeptServer = {
  /** null while it could not be opened. */
  readonly current: () => HttpServer | null;
  readonly close: () => Promise<void>;
};

const retryMs = 5_000;

export function keepServing(serving: Serving, clock: Clock, log: Log): KeptServer {
  let server: HttpServer | null = null;
  let closed = false;
  let cancelRetry = () => {};
  let attempt = Promise.resolve();

  async function tryOnce(): Promise<void> {
    try {
      const opened = await serving.open();
      if (closed) await opened.close();
      else {
        server = opened;
        log.info("Serving", { server: serving.name, address: serving.address });
      }
    } catch (thrown) {
      if (closed) return;
      const error = thrown instanceof Error ? thrown : new Error("unknown", { cause: thrown });
      log.error(error, "Cannot serve", { server: serving.name, address: serving.address });
      if (serving.onHardFail !== null) serving.onHardFail(error);
      else cancelRetry = clock.after(retryMs, start);
    }
  }

  function start(): void {
    attempt = tryOnce();
  }

  start();
  return {
    current: () => server,
    async close() {
      closed = true;
      cancelRetry();
      await attempt;
      await server?.close();
    },
  };
}
