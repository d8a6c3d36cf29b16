// Try a packet: the way of one packet, step by step, and whether the kernel agrees.
import { useEffect, useState } from "preact/hooks";
import type { ExplainView } from "../src/page/json.ts";
import { getJson, RequestError } from "./api.ts";
import type { ViewProps } from "./app.tsx";
import { percent } from "./format.ts";
import { Command, Message } from "./parts.tsx";
import { go, withQuery } from "./route.ts";
import { KernelAnswer, outcomeText } from "./why.tsx";

const examplesFrom = ["outside", "node", "pod:10.0.1.5"];

type Answer =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "answer"; readonly view: ExplainView }
  | { readonly kind: "failed"; readonly message: string };

export function PacketView({ route, node, page, head, revision }: ViewProps) {
  const { from = "", to = "", live = "" } = route.query;
  const [answer, setAnswer] = useState<Answer>({ kind: "none" });
  useEffect(() => {
    if (from === "" || to === "") {
      setAnswer({ kind: "none" });
      return () => {};
    }
    const abort = new AbortController();
    setAnswer((before) => (before.kind === "answer" ? before : { kind: "asking" }));
    getJson<ExplainView>("explain", { node, from, to, live }, abort.signal).then(
      (view) => setAnswer({ kind: "answer", view }),
      (error: unknown) => {
        if (error instanceof RequestError) setAnswer({ kind: "failed", message: error.message });
      },
    );
    return () => abort.abort();
    // With the kernel it is read once; without it the answer follows the cluster.
  }, [node, from, to, live, live === "" ? revision : 0]);
  return (
    <section class="panel packet" aria-label="Try a packet">
      <h2>Try a packet</h2>
      <Question key={`${from} ${to}`} route={route} canCompare={head?.kernel === true} />
      {answer.kind === "none" && <Examples route={route} />}
      {answer.kind === "asking" && <Message title="Asking…" />}
      {answer.kind === "failed" && (
        <Message tone="bad" title="This question cannot be answered">
          <bdi>{answer.message}</bdi>
        </Message>
      )}
      {answer.kind === "answer" && (
        <>
          <TraceSteps view={answer.view} />
          {answer.view.kernel !== undefined && <KernelAnswer view={answer.view.kernel} />}
          <Command
            line={`turnout explain ${from} ${to} ${live === "" ? "" : "--live "}${page.flags}`.trim()}
          />
        </>
      )}
    </section>
  );
}

function Question({
  route,
  canCompare,
}: {
  readonly route: ViewProps["route"];
  readonly canCompare: boolean;
}) {
  const [from, setFrom] = useState(route.query.from ?? "");
  const [to, setTo] = useState(route.query.to ?? "");
  const ask = (live: string) => {
    if (from.trim() === "" || to.trim() === "") return;
    go(withQuery(route, { from: from.trim(), to: to.trim(), live }));
  };
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault();
        ask("");
      }}
    >
      <label>
        From
        <input
          value={from}
          onInput={(event) => setFrom(event.currentTarget.value)}
          placeholder="outside, node, pod:10.0.1.5"
          spellcheck={false}
          autocapitalize="off"
        />
      </label>
      <span class="arrow" aria-hidden="true">
        →
      </span>
      <label>
        To
        <input
          value={to}
          onInput={(event) => setTo(event.currentTarget.value)}
          placeholder="svc/shop/web:80, nodeport:30080, 10.96.0.10:53/udp"
          spellcheck={false}
          autocapitalize="off"
        />
      </label>
      <button type="submit" class="primary">
        Explain
      </button>
      {canCompare && (
        <button type="button" onClick={() => ask("1")}>
          Compare with the kernel
        </button>
      )}
    </form>
  );
}

function Examples({ route }: { readonly route: ViewProps["route"] }) {
  return (
    <Message title="What happens to the first packet of a connection?">
      <p>
        From: a pod by its address (<code>pod:10.0.1.5</code>), this <code>node</code>, or{" "}
        <code>outside</code>. To: a Service (<code>svc/shop/web:80</code>), a node port (
        <code>nodeport:30080</code>) or any address and port.
      </p>
      <p class="examples">
        {examplesFrom.slice(0, 2).map((from) => (
          <button
            type="button"
            key={from}
            class="chip"
            onClick={() => go(withQuery(route, { from, to: "nodeport:30080" }))}
          >
            {from} → nodeport:30080
          </button>
        ))}
      </p>
    </Message>
  );
}

function TraceSteps({ view }: { readonly view: ExplainView }) {
  const { packet, candidates, leftOut } = view;
  const masqueraded = candidates.filter(({ masquerade }) => masquerade).length;
  const to = packet.to.address.includes(":") ? `[${packet.to.address}]` : packet.to.address;
  return (
    <dl class="trace">
      <dt>packet</dt>
      <dd>
        <code>
          {packet.from.address} → {to}:{packet.to.port}/{packet.to.protocol}
        </code>
        , as {view.node} sees it
      </dd>
      <dt>service</dt>
      <dd>
        <bdi>{view.service === null ? "none" : `${view.service}, at its ${view.frontend}`}</bdi>
      </dd>
      <dt>because</dt>
      <dd>
        {view.because.map((line) => (
          <p key={line}>
            <bdi>{line}</bdi>
          </p>
        ))}
      </dd>
      <dt>outcome</dt>
      <dd>
        <p class={view.outcome === "forward" || view.outcome === "pass" ? "verdict" : "verdict bad"}>
          {outcomeText({ outcome: view.outcome, candidates: candidates.length, masqueraded })}
          {view.stickySeconds === null ? "" : `; always the same for ${view.stickySeconds} s`}
        </p>
        {candidates.length > 0 && (
          <div class="wide" tabIndex={0} role="group" aria-label="Endpoints">
            <table class="plain">
              <tbody>
                {candidates.map(({ endpoint, node, probability, because }) => (
                  <tr key={endpoint}>
                    <td class="number">{percent(probability)}</td>
                    <td>
                      <code>{endpoint}</code>
                    </td>
                    <td>{node}</td>
                    <td class="dim">{because}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </dd>
      {leftOut.length > 0 && (
        <>
          <dt>left out</dt>
          <dd>
            {leftOut.map(({ endpoint, node, reason }) => (
              <p key={endpoint}>
                <code>{endpoint}</code> {node === "" ? "" : `on ${node}`}: <span class="warn">{reason}</span>
              </p>
            ))}
          </dd>
        </>
      )}
      <dt>client</dt>
      <dd>sees {view.clientSees}</dd>
    </dl>
  );
}
