// Sends one request over a pooled connection and returns the response header, or the reason why there is none.
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
  /** Timeout for the response header. */
  readonly headMs: number;
  /** Called before it is sent a second time. */
  readonly onResend: () => void;
};

export type Transport = {
  /** Rejects with ApiFailure, or with the signal's reason; the signal also aborts the response body. */
  send(request: Sending, signal: AbortSignal): Promise<IncomingMessage>;
  /** Classifies an error of a stream. */
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
        // A pooled connection may have been closed while it was idle; the server may still be healthy.
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
      // Reported here as well, because a request that still waits for its connection does not emit the error.
      const giveUp = (error: Error) => {
        reject(error);
        request.destroy();
      };
      const late = new ApiFailure(
        "lost",
        `Cannot reach ${server.host}: no response within ${headMs / 1000} s`,
      );
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
      // Not requested; without a listener there would be neither a response nor an error.
      request.once("upgrade", (_, socket) => {
        reject(lost(new Error("it requires another protocol")));
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

  /** A certificate, key or header that cannot be used is refused here: perhaps its file is being replaced. */
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
  // Keep-alive probes detect peers that disappeared without closing the connection.
  const options = { keepAlive: true, keepAliveMsecs: 30_000 };
  if (proxy !== null) return tunnelAgent(proxy, server, options, clock);
  return server.protocol === "https:" ? new HttpsAgent(options) : new HttpAgent(options);
}
