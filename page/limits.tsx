// Limits of the node and how much of each is used, and the Kubernetes Events that its daemon sent.
import { fillingShare, fullShare, limitText } from "../src/observe/limits.ts";
import type { Status } from "../src/page/json.ts";
import { clockTime } from "./format.ts";

type Use = NonNullable<Status["limits"]>[number];

const texts: Readonly<Record<Use["name"], string>> = {
  conntrack: "tracked connections",
  memory: "memory of the daemon",
  heap: "JavaScript heap",
  "open files": "open files",
};

export function Limits({ status }: { readonly status: Status }) {
  const { limits = [] } = status;
  if (limits.length === 0) return <p class="empty">Not reported yet: the daemon is starting.</p>;
  return (
    <dl class="trace limits">
      {limits.map((use) => (
        <Limit key={use.name} use={use} />
      ))}
    </dl>
  );
}

function Limit({ use }: { readonly use: Use }) {
  const share = use.limit === null ? null : use.used / use.limit;
  return (
    <>
      <dt>{texts[use.name]}</dt>
      <dd class={toneOf(share)}>
        {share !== null && (
          <meter value={share} low={fillingShare} high={fullShare} optimum={0} aria-label={texts[use.name]} />
        )}
        {limitText(use)}
        {use.name === "conntrack" && share !== null && share >= fillingShare && (
          <>
            : <code>turnout doctor flows</code> shows what fills it
          </>
        )}
      </dd>
    </>
  );
}

function toneOf(share: number | null): string {
  if (share === null || share < fillingShare) return "";
  return share < fullShare ? "warn" : "bad";
}

export function Events({ status }: { readonly status: Status }) {
  const { events = [] } = status;
  if (events.length === 0) return <p class="empty">None since the daemon started.</p>;
  return (
    <ul class="problems events">
      {events.map(({ at, lastAt, count, type, reason, regarding, note, delivery }) => (
        <li key={`${at} ${reason} ${regarding.name}`} class={type === "Warning" ? "warn" : ""}>
          {clockTime(lastAt)} {type} {reason}, {regarding.kind}{" "}
          <bdi>
            {regarding.kind === "Service" ? `${regarding.namespace}/` : ""}
            {regarding.name}
          </bdi>
          {count === 1 ? "" : `, ${count} times`}
          {note === "" ? "" : ": "}
          <bdi>{note}</bdi>
          <span class="dim"> · {deliveries[delivery]}</span>
        </li>
      ))}
    </ul>
  );
}

const deliveries = {
  waiting: "not sent yet",
  sent: "sent to the API server",
  "given up": "not accepted by the API server",
} as const;
