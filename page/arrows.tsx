// What the kernel holds beside each arrow of the picture, read on request.
import type { ArrowsView, Path, PortJson } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { useOnRequest } from "./live.ts";

type ArrowsProps = ViewProps & { readonly path: Path; readonly port: PortJson };

export function Arrows({ node, path, port }: ArrowsProps) {
  const { state, read, clear } = useOnRequest<ArrowsView>("arrows", { node, from: path.from, to: path.to });
  return (
    <div class="arrows">
      <button type="button" class="link" onClick={read} disabled={state.kind === "reading"}>
        {state.kind === "read" ? "read the kernel's elements again" : "show the kernel's elements"}
      </button>
      {state.kind === "read" && (
        <button type="button" class="link" onClick={clear}>
          hide
        </button>
      )}
      {state.kind === "failed" && <p class="bad">{state.message}</p>}
      {state.kind === "read" && (
        <Elements view={state.value} from={path.from} to={port.frontends[path.frontend]!.place} />
      )}
    </div>
  );
}

function Elements({
  view: { service, endpoints, more },
  from,
  to,
}: {
  readonly view: ArrowsView;
  readonly from: string;
  readonly to: string;
}) {
  const lines = (steps: readonly string[]) => steps.map((step, i) => <code key={i}>{step}</code>);
  return (
    <dl>
      <dt>
        {from} → {to}
      </dt>
      <dd>{service.length === 0 ? "no rule of Turnout" : lines(service)}</dd>
      {endpoints.map(({ endpoint, steps }) => (
        <>
          <dt key={endpoint}>
            {to} → {endpoint}
          </dt>
          <dd>{lines(steps)}</dd>
        </>
      ))}
      {more > 0 && <dt>and {more.toLocaleString("en")} more endpoints</dt>}
    </dl>
  );
}
