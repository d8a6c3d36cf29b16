// Sends one request over a pooled connection and gives the head of its answer, or says why there is none.
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Clock } from "../world.ts";
import { tunnelAgent } from "./agent.ts";
import type { Connection } from "./connection.ts";
import { ApiFailure } from "./failure.ts";

export type Sending = {
  readonly options: RequestOptions;
  readonly body: string;
  /** How long the head of the answer may take. */
  readonly headMs: number;
  /** Called before it is sent a second time. */
  readonly onResend: () => void;
};

export type Transport = {
  /** Rejects with ApiFailure, or with the signal's reason; the signal also cuts the answer short later. */
  send(request: Sending, signal: AbortSignal): Promise<IncomingMessage>;
  /** An error of a stream as what it means to us. */
  lost(error: Error & { code?: string }): ApiFailure;
  /** Closes idle connections. */
  close(): void;
};

export function transport({ server, proxy }: Pick<Connection, "server" | "proxy">, clock: Clock): Transport {
  const agent = agentFor(server, proxy, clock);
  return {
    async send(sending, signal) {
      try {
        return await attempt(sending, signal);
      } catch (error) {
        // A kept connection may have been closed while it was idle; that says nothing about the server.
        if (!(error instanceof StaleConnection) || sending.options.method !== "GET") throw error;
        sending.onResend();
        return attempt(sending, signal);
      }
    },
    lost,
    close: () => agent.destroy(),
  };

  function attempt({ options, body, headMs }: Sending, signal: AbortSignal) {
    return new Promise<IncomingMessage>((resolve, reject) => {
      signal.throwIfAborted();
      const request = opened({ ...options, agent });
      // Told here as well, because a request that still waits for its connection keeps the error to itself.
      const giveUp = (error: Error) => {
        reject(error);
        request.destroy();
      };
      const late = new ApiFailure("lost", `Cannot reach ${server.host}: no answer within ${headMs / 1000} s`);
      const cancel = clock.after(headMs, () => giveUp(late));
      const abort = () => giveUp(signal.reason as Error);
      signal.addEventListener("abort", abort, { once: true });
      request.once("close", () => {
        cancel();
        signal.removeEventListener("abort", abort);
      });
      request.once("response", (answer) => {
        cancel();
        resolve(answer);
      });
      // Nobody asked for it, and without anybody who listens there would be neither answer nor error.
      request.once("upgrade", (_, socket) => {
        reject(lost(new Error("it wants to speak another protocol")));
        socket.destroy();
      });
      request.on("error", (error: Error & { code?: string }) => {
        const stale = request.reusedSocket && error.code === "ECONNRESET";
        const failure = stale ? new StaleConnection("lost", lost(error).message) : lost(error);
        reject(signal.aborted ? (signal.reason as Error) : failure);
      });
      request.end(body);
    });
  }

  /** A certificate, key or header that cannot be used is refused here: perhaps its file is just being replaced. */
  function opened(options: RequestOptions): ClientRequest {
    try {
      return (server.protocol === "https:" ? httpsRequest : httpRequest)(options);
    } catch (error) {
      throw lost(error as Error);
    }
  }

  function lost(error: Error & { code?: string }): ApiFailure {
    if (error instanceof ApiFailure) return error;
    return new ApiFailure("lost", `Cannot reach ${server.host}: ${error.message || error.code}`, {
      cause: error,
    });
  }
}

class StaleConnection extends ApiFailure {}

function agentFor(server: URL, proxy: URL | null, clock: Clock): HttpAgent {
  // Probes on idle connections find peers that went away without a word.
  const options = { keepAlive: true, keepAliveMsecs: 30_000 };
  if (proxy !== null) return tunnelAgent(proxy, server, options, clock);
  return server.protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
}
