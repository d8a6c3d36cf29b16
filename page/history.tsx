// What changed about a Service: when, why, in which words, and what happened to its packets before and after.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ChangeJson, HistoryView } from "../src/page/json.ts";
import { getJson, RequestError } from "./api.ts";
import type { ViewProps } from "./app.tsx";
import { moment, span } from "./format.ts";
import { type Loaded, useNow } from "./live.ts";
import { Command, Message, NoData } from "./parts.tsx";

const few = 50;
const many = 200;

export function History(props: ViewProps & { readonly service: string }) {
  const { service, page } = props;
  const [limit, setLimit] = useState(few);
  const { value, error } = useChanges(props, limit);
  const now = useNow();
  if (value === null) return <NoData error={error} title="Cannot show the history" />;
  if (value.note !== null) return <Message title="No history">{value.note}</Message>;
  const { changes, more } = value;
  return (
    <div class="history">
      {changes.length === 0 && <p class="empty">No change of this Service is recorded.</p>}
      <ol>
        {changes.map((change) => (
          <Change key={change.seq} change={change} now={now} />
        ))}
      </ol>
      {more && limit < many && (
        <p class="more">
          <button type="button" onClick={() => setLimit(many)}>
            Show older changes
          </button>
        </p>
      )}
      <Beginning view={value} isCut={more} />
      <Command line={`turnout history ${service} ${page.flags}`.trim()} />
    </div>
  );
}

/** Where the history ends, and why there. */
function Beginning({ view, isCut }: { readonly view: HistoryView; readonly isCut: boolean }) {
  const { history, loss } = view;
  return (
    <p class={loss === null ? "begins" : "begins warn"}>
      {isCut && `${view.changes.length} changes are shown; the command lists all. `}
      History begins at {moment(history!.beginsAt!)}
      {loss === null ? "" : `; ${loss}`}
      {history!.unsaved !== null && (
        <>
          . The history is not saved: <bdi>{history!.unsaved}</bdi>
        </>
      )}
    </p>
  );
}

function Change({ change, now }: { readonly change: ChangeJson; readonly now: number }) {
  const { at, text, written } = change;
  const isBad = Object.values(written).some(({ failed, refused }) => failed !== null || refused > 0);
  return (
    <li>
      <div class="when">
        <time dateTime={new Date(at).toISOString()}>{moment(at)}</time>
        <span>{span(now - at)} ago</span>
      </div>
      <div class="what">
        {text.clock !== null && <p class="warn">{text.clock}</p>}
        {text.lines.map((line, i) => (
          <p key={i} class="line">
            <bdi>{line}</bdi>
          </p>
        ))}
        <p class="cause">
          <bdi>{text.cause}</bdi>
        </p>
        <p class={isBad ? "written bad" : "written"}>
          <bdi>{text.written}</bdi>
        </p>
        <Packets change={change} />
      </div>
    </li>
  );
}

const senderNames = { pod: "pods here", node: "this node", outside: "outside" } as const;

function Packets({ change }: { readonly change: ChangeJson }) {
  const results = change.changes.flatMap(({ frontends = [] }) =>
    frontends.flatMap(({ frontend, fates: each }) => each.map((result) => ({ frontend, ...result }))),
  );
  if (results.length === 0) return <p class="dim">packets are handled as before</p>;
  return (
    <details>
      <summary>packets before and after</summary>
      <dl>
        {results.map(({ frontend, senders, before, after }, i) => (
          <div key={i}>
            <dt>
              <bdi>{frontend}</bdi> from{" "}
              {senders.length === 3
                ? "all senders"
                : senders.map((sender) => senderNames[sender]).join(" and ")}
            </dt>
            <dd class="before">{before ?? "no such frontend"}</dd>
            <dd class="after">{after ?? "no such frontend"}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

type Known = { readonly key: string; readonly view: HistoryView };

/** The changes, of which only new ones are loaded after the first time. */
function useChanges(
  { node, service, revision, head }: ViewProps & { readonly service: string },
  limit: number,
): Loaded<HistoryView> {
  const [loaded, setLoaded] = useState<Loaded<HistoryView>>({ value: null, error: null });
  const known = useRef<Known | null>(null);
  // Another daemon counts changes from the beginning.
  const key = JSON.stringify([node, service, limit, head?.startedAt]);
  useEffect(() => {
    const abort = new AbortController();
    const before = known.current?.key === key ? known.current.view : null;
    const after = before === null ? 0 : settledSeq(before.changes);
    const query = { node, name: service, limit: String(limit), after: String(after) };
    getJson<HistoryView>("history", query, abort.signal).then(
      (view) => {
        const merged = before === null ? view : joined(view, before, after, limit);
        known.current = { key, view: merged };
        setLoaded({ value: merged, error: null });
      },
      (error: unknown) => {
        if (abort.signal.aborted || !(error instanceof RequestError)) return;
        setLoaded((last) => ({ value: last.value, error }));
      },
    );
    return () => abort.abort();
  }, [key, revision, head?.lastSync?.at]);
  return loaded;
}

/** What a Sync wrote is filled in after a change was recorded, and again when it is retried. */
function settledSeq([, ...changes]: HistoryView["changes"]): number {
  const isSettled = ({ written }: ChangeJson) => {
    const syncs = Object.values(written);
    return syncs.length > 0 && syncs.every(({ failed }) => failed === null);
  };
  return changes.find(isSettled)?.seq ?? 0;
}

function joined(newer: HistoryView, known: HistoryView, after: number, limit: number): HistoryView {
  const changes = [...newer.changes, ...known.changes.filter(({ seq }) => seq <= after)];
  return {
    ...newer,
    changes: changes.slice(0, limit),
    more: known.more || newer.more || changes.length > limit,
  };
}
