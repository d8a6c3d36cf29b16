// Try a packet: the way of one packet, step by step, and whether the kernel agrees.
import { useEffect, useState } from "preact/hooks";
import type { ExplainView, ServiceRow, ServicesView } from "../src/page/json.ts";
import { getJson, RequestError } from "./api.ts";
import type { ViewProps } from "./app.tsx";
import { useView } from "./live.ts";
import { Command, Message } from "./parts.tsx";
import { go, withQuery } from "./route.ts";
import { TracePicture, TraceSteps } from "./trace.tsx";
import { WhatIf } from "./what-if.tsx";
import { KernelAnswer } from "./why.tsx";

type Answer =
  | { readonly kind: "none" }
  | { readonly kind: "asking" }
  | { readonly kind: "answer"; readonly view: ExplainView }
  | { readonly kind: "failed"; readonly message: string };

export function PacketView(props: ViewProps) {
  const { route, node, page, head, revision, names } = props;
  // Those that need attention come first.
  const { value: services } = useView<ServicesView>("services", { node, limit: "100" }, 0);
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
      <Question
        key={`${from} ${to}`}
        route={route}
        canCompare={head?.kernel === true}
        pods={Object.values(names)}
        services={services?.rows ?? []}
      />
      {answer.kind === "none" && <Examples route={route} rows={services?.rows ?? []} />}
      {answer.kind === "asking" && <Message title="Asking…" />}
      {answer.kind === "failed" && (
        <Message tone="bad" title="This question cannot be answered">
          <bdi>{answer.message}</bdi>
        </Message>
      )}
      {answer.kind === "answer" && (
        <>
          {answer.view.service !== null && <WhatIf {...props} now={answer.view} />}
          {!route.query.without && <TracePicture {...props} view={answer.view} />}
          {route.query.without && <h3>Now, step by step</h3>}
          <TraceSteps {...props} view={answer.view} />
          {answer.view.kernel !== undefined && <KernelAnswer view={answer.view.kernel} />}
          <Command
            line={`turnout explain ${from} ${to} ${live === "" ? "" : "--live "}${page.flags}`.trim()}
          />
        </>
      )}
    </section>
  );
}

type QuestionProps = {
  readonly route: ViewProps["route"];
  readonly canCompare: boolean;
  /** Suggested as senders, where their names are known. */
  readonly pods: readonly string[];
  readonly services: readonly ServiceRow[];
};

function Question({ route, canCompare, pods, services }: QuestionProps) {
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
          list="senders"
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
          list="destinations"
          spellcheck={false}
          autocapitalize="off"
        />
      </label>
      <datalist id="senders">
        {["outside", "node", ...pods].map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <datalist id="destinations">
        {services.map(({ service, frontends: [first] }) => (
          <option key={service} value={first?.replace("*", "nodeport")}>
            {service}
          </option>
        ))}
      </datalist>
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

/** Packets of this node to the Services that come first. */
const mostExamples = 4;

function Examples({
  route,
  rows,
}: {
  readonly route: ViewProps["route"];
  readonly rows: readonly ServiceRow[];
}) {
  const examples = rows
    .flatMap(({ service, frontends: [to] }) =>
      to === undefined || to.startsWith("*") ? [] : [{ service, to }],
    )
    .slice(0, mostExamples);
  return (
    <Message title="What happens to the first packet of a connection?">
      <p>
        From: a pod by its address (<code>pod:10.0.1.5</code>), this <code>node</code>, or{" "}
        <code>outside</code>. To: a Service (<code>svc/shop/web:80</code>), a node port (
        <code>nodeport:30080</code>) or any address and port. Nothing is sent.
      </p>
      <p class="examples">
        {examples.map(({ service, to }) => (
          <button
            type="button"
            key={service}
            class="chip"
            onClick={() => go(withQuery(route, { from: "node", to }))}
          >
            node → <bdi>{service}</bdi>
          </button>
        ))}
      </p>
    </Message>
  );
}
