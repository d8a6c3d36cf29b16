// Sends one request from a namespace and returns the result as a client sees it.
import { type RequestOptions, request } from "node:http";
import { isIPv6 } from "node:net";
import { type EchoReply, type Inside, openUdp } from "./echo.ts";

export type Destination = {
  readonly address: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp";
};

export type SendResult =
  | { readonly kind: "answered"; readonly by: EchoReply; readonly ms: number }
  /** By a rule of the proxy on this node. */
  | { readonly kind: "rejected"; readonly node: string; readonly ms: number }
  /** `by`: the address without a listener; null: unknown. */
  | { readonly kind: "refused"; readonly by: string | null; readonly ms: number }
  /** The connection was accepted and closed. */
  | { readonly kind: "closed"; readonly ms: number }
  | { readonly kind: "silence"; readonly ms: number }
  | { readonly kind: "unreachable"; readonly ms: number };

const timeoutMs = 1_500;
const timeoutMessage = "no answer in time";

/** `source`: the address to send from; any when absent. */
export function send(inside: Inside, to: Destination, source: string | undefined): Promise<SendResult> {
  return to.protocol === "tcp" ? sendHttp(inside, to, source) : sendUdp(inside, to, source);
}

function sendHttp(
  inside: Inside,
  { address, port }: Destination,
  source: string | undefined,
): Promise<SendResult> {
  const started = performance.now();
  const ms = () => Math.round((performance.now() - started) * 10) / 10;
  return new Promise((resolve) => {
    // With a synchronous lookup the socket is created immediately, in the current namespace of the thread.
    const options: RequestOptions & { autoSelectFamily: boolean } = {
      host: "service",
      port,
      agent: false,
      headers: { host: address },
      autoSelectFamily: false,
      ...(source === undefined ? {} : { localAddress: source }),
      lookup: (_name, _options, done) => done(null, address, isIPv6(address) ? 6 : 4),
    };
    const call = inside(() => request(options));
    const timer = setTimeout(() => call.destroy(new Error(timeoutMessage)), timeoutMs);
    call.on("close", () => clearTimeout(timer));
    call.on("error", (error: NodeJS.ErrnoException) => resolve(failureOf(error, ms())));
    call.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve({ kind: "answered", by: replyIn(text, address, port), ms: ms() }));
      response.on("error", () => resolve({ kind: "silence", ms: ms() }));
    });
    call.end();
  });
}

function failureOf(error: NodeJS.ErrnoException, ms: number): SendResult {
  if (error.code === "ECONNREFUSED") return { kind: "refused", by: null, ms };
  if (error.code === "ECONNRESET" && error.message !== timeoutMessage) return { kind: "closed", ms };
  const isUnreachable = error.code === "EHOSTUNREACH" || error.code === "ENETUNREACH";
  return { kind: isUnreachable ? "unreachable" : "silence", ms };
}

function sendUdp(
  inside: Inside,
  { address, port }: Destination,
  source: string | undefined,
): Promise<SendResult> {
  const started = performance.now();
  const ms = () => Math.round((performance.now() - started) * 10) / 10;
  const socket = openUdp(isIPv6(address) ? "udp6" : "udp4");
  return new Promise<SendResult>((resolve) => {
    const timer = setTimeout(() => resolve({ kind: "silence", ms: ms() }), timeoutMs);
    const settle = (result: SendResult) => {
      clearTimeout(timer);
      resolve(result);
    };
    socket.on("error", (error: NodeJS.ErrnoException) => settle(failureOf(error, ms())));
    socket.on("message", (text) =>
      settle({ kind: "answered", by: replyIn(text.toString(), address, port), ms: ms() }),
    );
    // Only a connected socket receives ICMP errors.
    inside(() => (source === undefined ? socket.bind(0) : socket.bind(0, source)));
    socket.connect(port, address, () => socket.send("hello"));
  }).finally(() => socket.close());
}

/** A reply of another server, such as a health check, has only an endpoint. */
function replyIn(text: string, address: string, port: number): EchoReply {
  try {
    const answer = JSON.parse(text) as Partial<EchoReply>;
    if (answer.pod !== undefined) return answer as EchoReply;
  } catch {
    // Not one of our pods.
  }
  return { pod: "", node: "", endpoint: `${address}:${port}`, saw: "" };
}
