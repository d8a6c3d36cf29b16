// What if a pod, a node or a zone were gone: the same packet before and after, and what other Services would lose.
import { useState } from "preact/hooks";
import type { ExplainView, PacketOutlook, PlacesView, WhatIfView } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { addressOf, count, percent } from "./format.ts";
import { useView } from "./live.ts";
import { Command, Message } from "./parts.tsx";
import { go, withQuery } from "./route.ts";
import { TracePicture, Verdict } from "./trace.tsx";

/** More chips than these would not be read. */
const mostPods = 8;
const mostChanges = 20;

/** `now`: the answer without anything gone. */
export function WhatIf(props: ViewProps & { readonly now: ExplainView }) {
  const { route } = props;
  const gone = (route.query.without ?? "").split(",").filter((text) => text !== "");
  const set = (texts: readonly string[]) => go(withQuery(route, { without: texts.join(",") }));
  const [wasOpened, setOpened] = useState(false);
  // An address with something gone shows it, also while the view is open.
  const isOpen = wasOpened || gone.length > 0;
  return (
    <details
      class="what-if"
      open={isOpen}
      onToggle={(event) => setOpened((event.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>What if a pod, a node or a zone were gone?</summary>
      {isOpen && <Choices {...props} gone={gone} set={set} />}
      {isOpen && gone.length > 0 && <Outlook {...props} gone={gone} />}
    </details>
  );
}

type GoneProps = ViewProps & { readonly now: ExplainView; readonly gone: readonly string[] };

function Choices(props: GoneProps & { readonly set: (texts: readonly string[]) => void }) {
  const { gone, set, names } = props;
  const { value } = useView<PlacesView>("places", { node: props.node }, 0);
  const [text, setText] = useState("");
  const offered = [...new Set([...choicesOf(props.now, value), ...gone])];
  const toggle = (each: string) =>
    set(gone.includes(each) ? gone.filter((other) => other !== each) : [...gone, each]);
  return (
    <form
      class="choices"
      onSubmit={(event) => {
        event.preventDefault();
        const added = text.trim();
        if (added !== "" && !gone.includes(added)) set([...gone, added]);
        setText("");
      }}
    >
      <span class="dim">without</span>
      {offered.map((each) => (
        <button
          type="button"
          class="chip"
          key={each}
          aria-pressed={gone.includes(each)}
          onClick={() => toggle(each)}
        >
          <bdi>{labelOf(each, names)}</bdi>
        </button>
      ))}
      <input
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        placeholder="zone/b, node/NAME, pod/10.0.1.5"
        aria-label="Another node, zone or pod"
        spellcheck={false}
        autocapitalize="off"
      />
      <button type="submit">Add</button>
    </form>
  );
}

/** Pods and nodes of this packet's Service, then zones and other nodes. */
function choicesOf({ candidates, leftOut }: ExplainView, places: PlacesView | null): string[] {
  const endpoints = [...candidates, ...leftOut];
  const nodes = [...new Set(endpoints.map(({ node }) => node))].filter((node) => node !== "");
  const others = (places?.nodes ?? []).filter((node) => !nodes.includes(node));
  return [
    ...endpoints.slice(0, mostPods).map(({ endpoint }) => `pod/${addressOf(endpoint)}`),
    ...[...nodes, ...others].slice(0, mostPods).map((node) => `node/${node}`),
    ...(places?.zones ?? []).slice(0, mostPods).map((zone) => `zone/${zone}`),
  ];
}

/** `pod web-1`, `node node-b`. */
function labelOf(text: string, names: ViewProps["names"]): string {
  const [kind, ...rest] = text.split("/");
  const name = rest.join("/");
  return `${kind} ${names[name] ?? name}`;
}

function Outlook(props: GoneProps) {
  const { route, node, gone, revision, page } = props;
  const { from = "", to = "" } = route.query;
  const query = { node, from, to, without: gone.join(",") };
  const { value, error } = useView<WhatIfView>("whatif", query, revision);
  const line = ["turnout whatif", ...gone.map((text) => `--without=${text}`), page.flags].join(" ").trim();
  if (error !== null)
    return (
      <Message tone="bad" title="This question cannot be answered">
        <bdi>{error.message}</bdi>
      </Message>
    );
  if (value === null) return <Message title="Comparing…" />;
  return (
    <>
      <p class="note">
        Nothing is changed. The answer is for the moment after it is gone, before controllers replace pods or
        write new topology hints.
      </p>
      {value.packet !== null && <BeforeAfter {...props} packet={value.packet} />}
      <Services view={value} />
      <Command line={line} />
    </>
  );
}

function BeforeAfter(props: GoneProps & { readonly packet: PacketOutlook }) {
  const { packet, gone, names } = props;
  const what = gone.map((text) => labelOf(text, names)).join(", ");
  return (
    <div class="columns compared">
      <Side {...props} title="Now" view={packet.before} />
      {packet.after === null ? (
        <section aria-label={`Without ${what}`}>
          <h3>Without {what}</h3>
          <Message title="This node would be gone">
            It would neither send nor forward packets. Try the packet on another node.
          </Message>
        </section>
      ) : (
        <Side {...props} title={`Without ${what}`} view={packet.after} />
      )}
    </div>
  );
}

function Side(props: GoneProps & { readonly title: string; readonly view: ExplainView }) {
  const { title, view } = props;
  return (
    <section aria-label={title}>
      <h3>
        <bdi>{title}</bdi>
      </h3>
      <TracePicture {...props} view={view} />
      <div class="side">
        <Verdict view={view} />
        <p class="dim">
          <bdi>{view.because.at(-1)}</bdi>
        </p>
        <p>client sees {view.clientSees}</p>
      </div>
    </section>
  );
}

function Services({ view: { answer, moreChanges } }: { readonly view: WhatIfView }) {
  const { withoutEndpoint, changes } = answer;
  if (changes.length === 0)
    return <p class="empty">No Service of the cluster would be distributed differently.</p>;
  const hidden = changes.length - mostChanges + moreChanges;
  return (
    <>
      <h3>In the whole cluster</h3>
      {withoutEndpoint.length === 0 ? (
        <p class="empty">Every Service keeps an endpoint.</p>
      ) : (
        <ul class="problems">
          {withoutEndpoint.slice(0, mostChanges).map(({ port, family, protocol }) => (
            <li key={`${family} ${protocol} ${port}`}>
              no endpoint would be left: <bdi>{port}</bdi> ({protocol}, {family})
            </li>
          ))}
          {withoutEndpoint.length > mostChanges && (
            <li>and {count(withoutEndpoint.length - mostChanges, "more port")}</li>
          )}
        </ul>
      )}
      <div class="wide" tabIndex={0} role="group" aria-label="Changes">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Service port</th>
              <th scope="col">Endpoints</th>
              <th scope="col">Largest share of one endpoint</th>
              <th scope="col">From</th>
            </tr>
          </thead>
          <tbody>{changes.slice(0, mostChanges).map(Change)}</tbody>
        </table>
      </div>
      {hidden > 0 && <p class="empty">and {count(hidden, "more Service port")}; the command prints all</p>}
    </>
  );
}

type Outlooks = WhatIfView["answer"]["changes"];

function Change({ family, protocol, port, usable, from }: Outlooks[number]) {
  const largest = (when: "before" | "after") =>
    Math.max(0, ...from.flatMap(({ shares }) => shares.map((share) => share[when])));
  const nodes = [...new Set(from.flatMap((group) => group.nodes))];
  return (
    <tr key={`${family} ${protocol} ${port}`}>
      <td>
        <bdi>{port}</bdi> <span class="dim">{family === "ipv4" ? "IPv4" : "IPv6"}</span>
      </td>
      <td class={usable.after === 0 ? "bad" : ""}>
        {usable.before} → {usable.after}
      </td>
      <td>
        {from.length === 0
          ? "the nodes that remain do not use them"
          : `${percent(largest("before"))} → ${percent(largest("after"))}`}
        {from.some(({ hintsLost }) => hintsLost) && (
          <span class="warn"> · topology hints no longer hold</span>
        )}
      </td>
      <td class="dim">
        {nodes.slice(0, 3).join(", ")}
        {nodes.length > 3 ? ` and ${nodes.length - 3} more` : ""}
      </td>
    </tr>
  );
}
