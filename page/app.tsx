// The frame of the page: status line, navigation, the view, and what to do when the connection is lost.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Head, PageJson } from "../src/page/json.ts";
import { count, millis, span } from "./format.ts";
import { Keys } from "./keys.tsx";
import { type Connection, useLive, useNow, useView } from "./live.ts";
import { NodePanel } from "./node.tsx";
import { PacketView } from "./packet.tsx";
import { Message } from "./parts.tsx";
import { Playground } from "./playground.tsx";
import { go, hrefOf, type Route, useRoute, type ViewName, withQuery } from "./route.ts";
import { ServicesView } from "./services.tsx";

export function App({ page }: { readonly page: PageJson }) {
  const route = useRoute();
  const [paused, setPaused] = useState(false);
  const [showsKeys, setShowsKeys] = useState(false);
  const node = page.nodes.find((name) => name === route.query.node) ?? page.nodes[0] ?? "";
  const { connection, update } = useLive(node, paused);
  const search = useRef<HTMLInputElement>(null);
  useShortcuts(
    search,
    () => setPaused((before) => !before),
    () => setShowsKeys((before) => !before),
  );
  useEffect(() => {
    document.title = update === null ? "Turnout" : `${update.head.node}: ${update.head.state} · Turnout`;
  }, [update?.head.node, update?.head.state]);
  const names = useNames(page, node, update?.revision ?? 0);
  if (connection.kind === "signed out") return <SignedOut />;
  const view = {
    node,
    route,
    page: withNode(page, node),
    names,
    revision: update?.revision ?? 0,
    paused,
    head: update?.head ?? null,
  };
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header class="status">
        <Logo />
        <span class="brand">Turnout</span>
        <NodeName page={page} node={node} route={route} />
        <StatusLine head={update?.head ?? null} />
      </header>
      <nav class="views" aria-label="Views">
        <ViewLink name="services" route={route} label="Services" />
        <ViewLink name="packet" route={route} label="Try a packet" />
        <ViewLink name="node" route={route} label="Node" />
        <Search route={route} field={search} />
        <ConnectionText connection={connection} />
        <button type="button" class="link" aria-pressed={paused} onClick={() => setPaused(!paused)}>
          {paused ? "resume" : "pause"}
        </button>
        <button type="button" class="link keys-button" onClick={() => setShowsKeys(true)}>
          shortcuts
        </button>
      </nav>
      {connection.kind === "lost" && <Lost connection={connection} />}
      <main id="main" tabIndex={-1}>
        {route.view === "services" && <ServicesView {...view} />}
        {route.view === "packet" && <PacketView {...view} />}
        {route.view === "node" && <NodePanel {...view} />}
      </main>
      {page.actions && <Playground />}
      {showsKeys && <Keys onClose={() => setShowsKeys(false)} />}
    </>
  );
}

/** What every view gets. */
export type ViewProps = {
  readonly node: string;
  readonly route: Route;
  readonly page: PageJson;
  readonly revision: number;
  readonly paused: boolean;
  readonly head: Head | null;
  /** Names of pods by their address, where they are known. */
  readonly names: Readonly<Record<string, string>>;
};

/** Commands name the node where there are several. */
function withNode(page: PageJson, node: string): PageJson {
  return page.nodes.length < 2 ? page : { ...page, flags: `${page.flags} --node=${node}` };
}

/** Only the playground has them. */
function useNames(page: PageJson, node: string, revision: number): ViewProps["names"] {
  const { value } = useView<ViewProps["names"]>("names", page.actions ? { node } : null, revision);
  return value ?? noNames;
}

const noNames = {};

function useShortcuts(
  search: { readonly current: HTMLInputElement | null },
  pause: () => void,
  keys: () => void,
): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isTyping = (event.target as Element).closest("input, textarea, select") !== null;
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      if (event.key === "/") search.current?.focus();
      else if (event.key === "p") pause();
      else if (event.key === "?") keys();
      else if (event.key === "1" || event.key === "2" || event.key === "3")
        go({ view: (["services", "packet", "node"] as const)[Number(event.key) - 1]!, query: {} });
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function Logo() {
  return (
    <svg class="logo" width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <path d="M4 20V2M18 2c0 8-14 8-14 18" />
    </svg>
  );
}

function NodeName({ page, node, route }: { page: PageJson; node: string; route: Route }) {
  if (page.nodes.length < 2) return <h1>{node}</h1>;
  return (
    <h1>
      <select
        aria-label="Node"
        value={node}
        onChange={(event) => go(withQuery(route, { node: event.currentTarget.value }))}
      >
        {page.nodes.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
    </h1>
  );
}

const pills: Readonly<Record<Head["state"], string>> = {
  healthy: "good",
  unhealthy: "bad",
  starting: "warn",
  "no daemon": "plain",
};

function StatusLine({ head }: { readonly head: Head | null }) {
  const now = useNow();
  if (head === null) return <span class="dim">connecting…</span>;
  return (
    <>
      <span class="badge">{head.mode}</span>
      <span class="badge version">{head.version}</span>
      <span class={`pill ${pills[head.state]}`}>{head.state}</span>
      <dl class="facts">
        {facts(head, now).map(([label, text, tone]) => (
          <div key={label} title={explanations[label]}>
            <dt>{label}</dt>
            <dd class={tone}>{text}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function facts(head: Head, now: number): (readonly [string, string, string])[] {
  const { reasons, comparedAt, drift, lastSync, latency, watch } = head;
  if (head.state === "no daemon")
    return [
      ["Source", head.source, ""],
      ["Kernel", "not compared: no daemon", ""],
    ];
  return [
    ...(reasons.length === 0
      ? []
      : [["Why", reasons.join("; "), head.state === "healthy" ? "warn" : "bad"] as const]),
    [
      "Kernel",
      comparedAt === null ? "not compared yet" : `as planned, compared ${span(now - comparedAt)} ago`,
      "",
    ],
    ...(drift === null || now - drift.at > 600_000
      ? []
      : [["Drift", `${drift.differences} repaired ${span(now - drift.at)} ago`, "warn"] as const]),
    [
      "Last Sync",
      lastSync === null
        ? "none yet"
        : `${span(now - lastSync.at)} ago · ${count(lastSync.operations, "operation")} · ${millis(lastSync.ms)}`,
      lastSync?.outcome === "failed" ? "bad" : "",
    ],
    [
      "Change → kernel",
      latency === null
        ? "no endpoint changed yet"
        : `p50 ${millis(latency.p50)} · p99 ${millis(latency.p99)}`,
      "",
    ],
    ["API watch", watch === null ? "none: files" : `last data ${span(now - watch.since)} ago`, ""],
  ];
}

const explanations: Readonly<Record<string, string>> = {
  Kernel: "Whether the rules in the kernel are those that the cluster requires",
  Drift: "Another program changed the rules; they were restored",
  "Last Sync": "The last time the rules were compared with the cluster, and what was written",
  "Change → kernel":
    "From a change of endpoints in the cluster until the kernel follows it, of the latest changes",
  "API watch": "When the API server last sent anything; it does so normally every minute",
};

function Search({ route, field }: { route: Route; field: { current: HTMLInputElement | null } }) {
  const text = route.view === "services" ? (route.query.q ?? "") : "";
  const search = (q: string) => {
    const base =
      route.view === "services"
        ? route
        : { view: "services" as const, query: { node: route.query.node ?? "" } };
    go(withQuery(base, { q }), route.view === "services" ? "replace" : "push");
  };
  return (
    <input
      ref={field}
      type="search"
      class="search"
      placeholder="Search Services, addresses   /"
      aria-label="Search Services and addresses"
      value={text}
      onInput={(event) => search(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        search("");
        event.currentTarget.blur();
      }}
    />
  );
}

function ViewLink({ name, route, label }: { name: ViewName; route: Route; label: string }) {
  const query = { node: route.query.node ?? "" };
  return (
    <a href={hrefOf({ view: name, query })} aria-current={route.view === name ? "page" : undefined}>
      {label}
    </a>
  );
}

function ConnectionText({ connection }: { readonly connection: Connection }) {
  const texts: Readonly<Record<Connection["kind"], string>> = {
    connecting: "connecting…",
    live: "live",
    paused: "paused",
    lost: "disconnected",
    "signed out": "signed out",
  };
  return (
    <span class={`connection ${connection.kind}`} role="status">
      {texts[connection.kind]}
    </span>
  );
}

function Lost({ connection }: { readonly connection: Extract<Connection, { kind: "lost" }> }) {
  const now = useNow();
  return (
    <Message tone="bad" title={`Disconnected for ${span(now - connection.since)}`}>
      <bdi>{connection.reason}</bdi>. What is shown is the last state that was received; the page connects
      again by itself.
    </Message>
  );
}

export function SignedOut() {
  return (
    <main class="alone">
      <Message title="No session">
        <p>This page shows the network of a node, so it needs the token of its server.</p>
        <p>
          Run <code>turnout page</code> and open the address that it prints. In a cluster:{" "}
          <code>kubectl turnout ui</code>.
        </p>
      </Message>
    </main>
  );
}

export function Unreachable({ reason }: { readonly reason: string }) {
  return (
    <main class="alone">
      <Message tone="bad" title="Disconnected">
        {reason}. The page connects again by itself.
      </Message>
    </main>
  );
}
