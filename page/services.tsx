// The table of Services: virtualised, the troubled first, with filters that are part of the address.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Level, RowTraffic, ServicesView as Services, ServiceType } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { amount, count, rate } from "./format.ts";
import { type Loaded, useTick, useView } from "./live.ts";
import { Command, Endpoints, Message, NumberHead, State } from "./parts.tsx";
import { go, hrefOf, type Route, withQuery } from "./route.ts";
import { ServicePanel } from "./service.tsx";

const rowHeight = 48;
/** Rows loaded at a time. */
const windowRows = 100;

export function ServicesView(props: ViewProps) {
  const { route, node, page, head } = props;
  const { namespace = "", type = "", level = "", q = "", service = "" } = route.query;
  const [first, setFirst] = useState(0);
  const offset = String(Math.max(0, Math.floor((first - 25) / 25) * 25));
  const query = { node, namespace, type, level, q, offset, limit: String(windowRows) };
  const loaded = useServices(props, query);
  return (
    <div class={service === "" ? "split" : "split open"}>
      <section class="panel list" aria-label="Services">
        <Filters route={route} view={loaded.value} />
        <Table loaded={loaded} route={route} onScroll={setFirst} starting={head?.state === "starting"} />
        <footer>
          <span>{totals(loaded.value, head)}</span>
          {loaded.value?.traffic.counted === false && <span>traffic {loaded.value.traffic.because}</span>}
          <Command line={tableCommand(page.flags, head)} />
        </footer>
      </section>
      {service === "" ? (
        <section class="panel hint">
          <Message title="No Service selected">
            Select one to see where its packets go, and why. Those that need attention are at the top.
          </Message>
        </section>
      ) : (
        <ServicePanel {...props} service={service} />
      )}
    </div>
  );
}

const readMs = 2_000;

/** Loaded again when the table changes, and while traffic is counted also in between. */
function useServices(
  { revision, paused }: ViewProps,
  query: Readonly<Record<string, string>>,
): Loaded<Services> {
  const [isCounted, setCounted] = useState(false);
  const tick = useTick(readMs, paused || !isCounted);
  const loaded = useView<Services>("services", query, revision * 1e6 + tick);
  const counted = loaded.value?.traffic.counted ?? false;
  useEffect(() => setCounted(counted), [counted]);
  return loaded;
}

function totals(view: Services | null, head: ViewProps["head"]): string {
  if (view === null) return "loading…";
  const shown = view.matched === view.total ? "" : `${view.matched.toLocaleString("en")} of `;
  return `${shown}${count(view.total, "Service")} · ${count(head?.endpoints ?? 0, "endpoint")}`;
}

/** Without a daemon there is no status to print. */
function tableCommand(flags: string, head: ViewProps["head"]): string {
  return `turnout ${head?.state === "no daemon" ? "render" : "status"} ${flags}`.trim();
}

const levelNames: Readonly<Record<Level, string>> = { trouble: "Trouble", warning: "Warning", ok: "Ok" };
const typeNames: readonly ServiceType[] = ["ClusterIP", "NodePort", "LoadBalancer"];

function Filters({ route, view }: { readonly route: Route; readonly view: Services | null }) {
  const { namespace = "", type = "", level = "" } = route.query;
  const all = view === null ? 0 : view.levels.trouble + view.levels.warning + view.levels.ok;
  const chip = (value: string, label: string, number: number) => (
    <button
      type="button"
      key={label}
      class="chip"
      aria-pressed={level === value}
      onClick={() => go(withQuery(route, { level: value }))}
    >
      {label} {view === null ? "" : number.toLocaleString("en")}
    </button>
  );
  return (
    <div class="filters">
      <h2 class="visually-hidden">Services</h2>
      <div role="group" aria-label="State">
        {chip("", "All", all)}
        {(["trouble", "warning", "ok"] as const).map((each) =>
          chip(each, levelNames[each], view?.levels[each] ?? 0),
        )}
      </div>
      <select
        aria-label="Namespace"
        value={namespace}
        onChange={(event) => go(withQuery(route, { namespace: event.currentTarget.value }))}
      >
        <option value="">all namespaces</option>
        {[...new Set([...(view?.namespaces.map(([name]) => name) ?? []), namespace])]
          .filter((name) => name !== "")
          .map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
      </select>
      <select
        aria-label="Type"
        value={type}
        onChange={(event) => go(withQuery(route, { type: event.currentTarget.value }))}
      >
        <option value="">all types</option>
        {typeNames.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

type TableProps = {
  readonly loaded: Loaded<Services>;
  readonly route: Route;
  readonly onScroll: (first: number) => void;
  readonly starting: boolean;
};

function Table({ loaded, route, onScroll, starting }: TableProps) {
  const { value, error } = loaded;
  const scroller = useRef<HTMLDivElement>(null);
  const filters = JSON.stringify({ ...route.query, service: "" });
  useLayoutEffect(() => {
    if (scroller.current !== null) scroller.current.scrollTop = 0;
    onScroll(0);
  }, [filters]);
  const focusing = useFocusByKey(scroller, value);
  if (value === null && error !== null)
    return (
      <Message tone="bad" title="Cannot show Services">
        {error.message}
      </Message>
    );
  if (value === null) return <Message title="Loading Services…" />;
  if (value.matched === 0) return <NoRows route={route} total={value.total} starting={starting} />;
  const hasTraffic = value.traffic.counted;
  const above = value.offset * rowHeight;
  const below = Math.max(0, value.matched - value.offset - value.rows.length) * rowHeight;
  return (
    <div
      ref={scroller}
      class="scroll"
      onScroll={(event) => onScroll(Math.floor(event.currentTarget.scrollTop / rowHeight))}
      onKeyDown={focusing}
    >
      <table aria-rowcount={value.matched + 1} class={hasTraffic ? "with-traffic" : undefined}>
        <thead>
          <tr>
            <th scope="col">Service</th>
            <th scope="col" class="type">
              Type
            </th>
            <th scope="col">Endpoints</th>
            {hasTraffic && (
              <>
                <th scope="col" class="number active">
                  Active
                </th>
                <NumberHead>New/s</NumberHead>
              </>
            )}
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {above > 0 && <Gap height={above} columns={hasTraffic ? 6 : 4} />}
          {value.rows.map((row, i) => (
            <Row key={row.service} row={row} index={value.offset + i} route={route} hasTraffic={hasTraffic} />
          ))}
          {below > 0 && <Gap height={below} columns={hasTraffic ? 6 : 4} />}
        </tbody>
      </table>
    </div>
  );
}

function Gap({ height, columns }: { readonly height: number; readonly columns: number }) {
  return (
    <tr aria-hidden="true" style={{ height: `${height}px` }}>
      <td colSpan={columns} />
    </tr>
  );
}

type RowProps = {
  readonly row: Services["rows"][number];
  readonly index: number;
  readonly route: Route;
  readonly hasTraffic: boolean;
};

function Row({ row, index, route, hasTraffic }: RowProps) {
  const isSelected = route.query.service === row.service;
  const href = hrefOf(withQuery(route, { service: row.service, port: "", path: "" }));
  const places = row.moreFrontends > 0 ? [...row.frontends, `+${row.moreFrontends}`] : row.frontends;
  return (
    <tr
      class={isSelected ? "selected" : undefined}
      aria-rowindex={index + 2}
      data-row={index}
      onClick={(event) => {
        if ((event.target as Element).closest("a") === null) location.hash = href;
      }}
    >
      <th scope="row">
        <a href={href} aria-current={isSelected ? "true" : undefined}>
          <bdi>{row.service}</bdi>
        </a>
        <span class="places">{places.join("  ")}</span>
      </th>
      <td class="type">{row.type}</td>
      <td>
        <Endpoints counts={row.endpoints} />
      </td>
      {hasTraffic && <TrafficCells traffic={row.traffic} />}
      <td>
        <State level={row.level} reasons={row.reasons} />
      </td>
    </tr>
  );
}

function TrafficCells({ traffic }: { readonly traffic: RowTraffic | null }) {
  const refused = traffic?.refused ?? 0;
  return (
    <>
      <td class="number active">{amount(traffic?.active ?? null)}</td>
      <td class="number">
        {rate(traffic?.connectionRate ?? null)}
        {refused > 0 && <span class="refused">{amount(refused)} refused</span>}
      </td>
    </>
  );
}

function NoRows({ route, total, starting }: { route: Route; total: number; starting: boolean }) {
  if (starting)
    return (
      <Message title="The daemon is starting">
        Services appear here as soon as it has read the cluster and written its first rules.
      </Message>
    );
  if (total === 0)
    return (
      <Message title="No Services">
        The cluster has no Service with a cluster IP. Headless and ExternalName Services are not proxied.
      </Message>
    );
  return (
    <Message title="No Service matches">
      <a href={hrefOf({ ...route, query: { node: route.query.node ?? "" } })}>Remove all filters</a>
    </Message>
  );
}

/** Arrow keys move the focus from row to row, also to rows that must be loaded first. */
function useFocusByKey(scroller: { current: HTMLDivElement | null }, view: Services | null) {
  const wanted = useRef<number | null>(null);
  useEffect(() => {
    if (wanted.current === null) return;
    const link = scroller.current?.querySelector<HTMLElement>(`[data-row="${wanted.current}"] a`);
    if (link == null) return;
    wanted.current = null;
    link.focus();
  }, [view]);
  return (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const row = (event.target as Element).closest<HTMLElement>("[data-row]");
    if (step === undefined || row === null || view === null) return;
    event.preventDefault();
    const next = Math.min(view.matched - 1, Math.max(0, Number(row.dataset.row) + step));
    const link = scroller.current?.querySelector<HTMLElement>(`[data-row="${next}"] a`);
    if (link == null) {
      wanted.current = next;
      scroller.current!.scrollTop = next * rowHeight;
    } else link.focus();
  };
}
