// Why the packets of one sender go where they go, with the rules and elements of the kernel on request.
import { outcomePhrase } from "../src/explain/outcome.ts";
import type { EndpointJson, ExplainView, KernelView, Path } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { percent } from "./format.ts";
import { useOnRequest } from "./live.ts";
import { Command, Message } from "./parts.tsx";

type WhyProps = ViewProps & { readonly path: Path; readonly endpoints: readonly EndpointJson[] };

export function Why({ path, endpoints, page, node, head }: WhyProps) {
  return (
    <div class="why">
      <dl class="trace">
        <dt>because</dt>
        <dd>
          {path.because.map((line) => (
            <p key={line}>
              <bdi>{line}</bdi>
            </p>
          ))}
        </dd>
        <dt>outcome</dt>
        <dd>{outcomeText(path)}</dd>
        {path.leftOut.length > 0 && (
          <>
            <dt>left out</dt>
            <dd>
              {path.leftOut.map(({ endpoint, reason }) => (
                <p key={endpoint}>
                  <code>{endpoints[endpoint]!.endpoint}</code> {reason}
                </p>
              ))}
            </dd>
          </>
        )}
        <dt>client</dt>
        <dd>sees {path.clientSees}</dd>
      </dl>
      <Command line={`turnout explain ${path.from} ${path.to} ${page.flags}`.trim()} />
      {head?.kernel === true && (
        <Kernel key={`${node} ${path.from} ${path.to}`} node={node} from={path.from} to={path.to} />
      )}
    </div>
  );
}

export function outcomeText({
  outcome,
  candidates,
  masqueraded,
}: Pick<Path, "outcome" | "candidates" | "masqueraded">): string {
  const share =
    candidates === 1
      ? "the only endpoint"
      : `one of ${candidates} endpoints, ${percent(1 / candidates)} each`;
  const source =
    masqueraded === 0
      ? "which sees the client's address"
      : masqueraded === candidates
        ? "which sees this node's address (masquerade)"
        : "some of which see this node's address (masquerade)";
  return outcomePhrase(outcome, `forward to ${share}, ${source}`);
}

/** Read on request: it takes the kernel time. */
function Kernel({ node, from, to }: { readonly node: string; readonly from: string; readonly to: string }) {
  const { state, read } = useOnRequest<ExplainView>("explain", { node, from, to, live: "1" });
  return (
    <div class="kernel">
      <button type="button" onClick={read} disabled={state.kind === "reading"}>
        {state.kind === "reading" ? "Reading the kernel…" : "Compare with the kernel"}
      </button>
      {state.kind === "failed" && (
        <Message tone="bad" title="Cannot compare">
          {state.message}
        </Message>
      )}
      {state.kind === "read" && <KernelAnswer view={state.value.kernel!} />}
    </div>
  );
}

export function KernelAnswer({ view }: { readonly view: KernelView }) {
  return (
    <div class={view.agrees ? "answer good" : "answer bad"} role="status">
      <strong>
        {view.agrees
          ? "✓ The kernel handles this packet as planned"
          : "✗ MISMATCH: the kernel handles this packet differently"}
      </strong>
      {!view.agrees && (
        <p>
          expected: {view.wanted.join(", ") || "nothing"}
          <br />
          found: {view.found.join(", ") || "no rules of Turnout"}
        </p>
      )}
      {view.steps.length > 0 && (
        <>
          <h3>Rules and elements on its way</h3>
          <ol class="steps">
            {view.steps.map((step) => (
              <li key={step}>
                <code>{step}</code>
              </li>
            ))}
          </ol>
        </>
      )}
      <h3>Tracked connections</h3>
      {view.flows.length === 0 ? (
        <p class="dim">none to this address and port</p>
      ) : (
        <ul class="steps">
          {view.flows.map((flow, i) => (
            <li key={i}>
              <code>{flow}</code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
