// The tracked connections of a Service, those that lead nowhere first; the kernel is read only while this is shown.
import type { FlowJson, FlowsView } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { addressOf, bytes, clockTime, count, span } from "./format.ts";
import { usePolled } from "./live.ts";
import { Command, Message, NumberHead } from "./parts.tsx";

/** After each answer. */
const readMs = 5_000;

export function Flows({ node, service, page, paused, names }: ViewProps & { readonly service: string }) {
  const { value, error, again } = usePolled<FlowsView>("flows", { node, name: service }, readMs, !paused);
  if (value === null)
    return error === null ? (
      <Message title="Loading…">The kernel is asked for the connections that it tracks.</Message>
    ) : (
      <Message tone={error.status === 400 ? "plain" : "bad"} title="No flows">
        <bdi>{error.message}</bdi>
      </Message>
    );
  return (
    <div class="flows">
      {error !== null && (
        <Message tone="bad" title="Cannot read the flows again">
          <bdi>{error.message}</bdi>
        </Message>
      )}
      <Summary view={value} again={again} />
      {value.note !== null && <p class="empty">{value.note}</p>}
      {value.flows.length === 0 ? (
        <p class="empty">The kernel tracks no connection to this Service.</p>
      ) : (
        <FlowTable view={value} names={names} />
      )}
      <Command line={`turnout flows svc/${service} ${page.flags}`.trim()} />
      {value.stale > 0 && <Command line={`turnout doctor flows ${page.flags}`.trim()} />}
    </div>
  );
}

function Summary({ view, again }: { readonly view: FlowsView; readonly again: () => void }) {
  const { matched, stale, classes, flows, complete, examined, at } = view;
  const kinds = Object.entries(classes).map(([name, number]) => `${number.toLocaleString("en")} ${name}`);
  return (
    <div class="summary">
      <strong>{count(matched, "flow")}</strong>
      {stale > 0 && (
        <span class="bad">
          {stale.toLocaleString("en")} stale: {kinds.join(", ")}
        </span>
      )}
      {flows.length < matched && <span class="dim">the first {flows.length} are listed</span>}
      {!complete && <span class="warn">the table changed while it was read</span>}
      <span class="dim">
        of {examined.toLocaleString("en")} tracked, read at {clockTime(at)}
      </span>
      <button type="button" class="link" onClick={again}>
        read again
      </button>
    </div>
  );
}

function FlowTable({ view, names }: { readonly view: FlowsView; readonly names: ViewProps["names"] }) {
  const hasAge = view.flows.some(({ ageSeconds }) => ageSeconds !== null);
  const hasBytes = view.flows.some(({ counters }) => counters !== null);
  return (
    <div class="wide" role="region" aria-label="Flows" tabIndex={0}>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Client</th>
            <th scope="col">Endpoint</th>
            {hasAge && <NumberHead>Age</NumberHead>}
            {hasBytes && <NumberHead>Bytes</NumberHead>}
            <th scope="col">Today</th>
          </tr>
        </thead>
        <tbody>
          {view.flows.map((flow, i) => (
            <tr key={`${i} ${flow.client}`} class={flow.finding === null ? undefined : "stale"}>
              <td>
                {flow.protocol} {flow.state}
              </td>
              <td>
                <Place place={flow.client} names={names} />
                <span class="under">to {flow.destination}</span>
              </td>
              <td>
                <Place place={flow.endpoint} names={names} />
                {flow.node !== null && <span class="under">{flow.node}</span>}
              </td>
              {hasAge && (
                <td class="number">{flow.ageSeconds === null ? "–" : span(flow.ageSeconds * 1000)}</td>
              )}
              {hasBytes && <td class="number">{bytes(bytesOf(flow))}</td>}
              <td class="reason" title={flow.today?.because ?? flow.because ?? undefined}>
                <bdi>
                  {flow.finding === null ? flow.words : `${flow.finding.class}: ${flow.finding.because}`}
                </bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Place({ place, names }: { readonly place: string | null; readonly names: ViewProps["names"] }) {
  if (place === null) return <>–</>;
  return (
    <>
      <code>{place}</code> <span class="dim">{names[addressOf(place)]}</span>
    </>
  );
}

function bytesOf({ counters }: FlowJson): number | null {
  return counters === null ? null : counters.original.bytes + counters.reply.bytes;
}
