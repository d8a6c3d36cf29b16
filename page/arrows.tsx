// What the kernel holds beside each arrow of the picture, read on request.
import { useState } from "preact/hooks";
import type { ArrowsView, Path, PortJson } from "../src/page/json.ts";
import { getJson, type RequestError } from "./api.ts";
import type { ViewProps } from "./app.tsx";

type ArrowsProps = ViewProps & { readonly path: Path; readonly port: PortJson };

type Reading =
  | { readonly kind: "idle" }
  | { readonly kind: "reading" }
  | { readonly kind: "read"; readonly view: ArrowsView }
  | { readonly kind: "failed"; readonly message: string };

export function Arrows({ node, path, port }: ArrowsProps) {
  const [reading, setReading] = useState<Reading>({ kind: "idle" });
  const read = () => {
    setReading({ kind: "reading" });
    getJson<ArrowsView>("arrows", { node, from: path.from, to: path.to }).then(
      (view) => setReading({ kind: "read", view }),
      ({ message }: RequestError) => setReading({ kind: "failed", message }),
    );
  };
  return (
    <div class="arrows">
      <button type="button" class="link" onClick={read} disabled={reading.kind === "reading"}>
        {reading.kind === "read" ? "read the kernel's elements again" : "show the kernel's elements"}
      </button>
      {reading.kind === "read" && (
        <button type="button" class="link" onClick={() => setReading({ kind: "idle" })}>
          hide
        </button>
      )}
      {reading.kind === "failed" && <p class="bad">{reading.message}</p>}
      {reading.kind === "read" && (
        <Elements view={reading.view} from={path.from} to={port.frontends[path.frontend]!.place} />
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
