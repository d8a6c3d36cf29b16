// The way of one packet: as a picture, and step by step in text.
import type { ExplainView } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { addressOf, percent } from "./format.ts";
import { Picture } from "./picture.tsx";
import { hrefOf } from "./route.ts";
import { outcomeText } from "./why.tsx";

type TraceProps = Pick<ViewProps, "names" | "route"> & { readonly view: ExplainView };

/** Nothing where the packet hits no Service. */
export function TracePicture({ view, names, route }: TraceProps) {
  if (view.picture === null) return null;
  const service = view.service!.split(":")[0]!;
  const href = hrefOf({ view: "services", query: { node: route.query.node ?? "", service } });
  const { from } = view.packet;
  const sender = names[from.address] ?? (from.origin === "node" ? "this node" : from.address);
  return <Picture port={view.picture} names={names} selected={0} sender={sender} hrefOfPath={() => href} />;
}

export function TraceSteps({ view, names }: Omit<TraceProps, "route">) {
  const { packet, candidates, leftOut } = view;
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
        <Verdict view={view} />
        {candidates.length > 0 && <Candidates view={view} names={names} />}
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

export function Verdict({ view }: { readonly view: ExplainView }) {
  const { outcome, candidates, stickySeconds } = view;
  const masqueraded = candidates.filter(({ masquerade }) => masquerade).length;
  return (
    <p class={outcome === "forward" || outcome === "pass" ? "verdict" : "verdict bad"}>
      {outcomeText({ outcome, candidates: candidates.length, masqueraded })}
      {stickySeconds === null ? "" : `; always the same for ${stickySeconds} s`}
    </p>
  );
}

function Candidates({ view, names }: Pick<TraceProps, "view" | "names">) {
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Endpoints">
      <table class="plain">
        <tbody>
          {view.candidates.map(({ endpoint, node, probability, because }) => (
            <tr key={endpoint}>
              <td class="number">{percent(probability)}</td>
              <td>
                <code>{endpoint}</code>
              </td>
              <td>{[names[addressOf(endpoint)], node].filter(Boolean).join(" on ")}</td>
              <td class="dim">{because}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
