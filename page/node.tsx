// The node: its Syncs over time, what is wrong, limits, Events, the watches, and the configuration in force.
import type { NodeView, SyncPoint } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { SyncChart } from "./chart.tsx";
import { clockTime, count, millis, span } from "./format.ts";
import { Events, Limits } from "./limits.tsx";
import { useNow, useView } from "./live.ts";
import { Command, Message, NoData, NumberHead } from "./parts.tsx";

/** Limits fill without an update of the Services. */
const reloadMs = 5_000;

export function NodePanel({ node, revision, page, head, paused }: ViewProps) {
  const turn = Math.floor(useNow() / reloadMs);
  const version = paused ? "" : `${revision} ${head?.lastSync?.at} ${turn}`;
  const { value, error } = useView<NodeView>("node", { node }, version);
  if (value === null)
    return (
      <section class="panel">
        <NoData error={error} title="Cannot show the node" />
      </section>
    );
  return (
    <div class="columns">
      <section class="panel across" aria-label="Syncs">
        <h2>Syncs</h2>
        <p class="empty">
          One Sync writes what changed in the cluster to the kernel, for IPv4 and IPv6 separately.
        </p>
        <Syncs points={value.syncs} hasDaemon={value.status !== null} />
      </section>
      <section class="panel" aria-label="Problems">
        <h2>Problems{value.head.problems === 0 ? "" : ` ${value.head.problems}`}</h2>
        <ProblemList view={value} />
        {value.status !== null && value.status.drift.length > 0 && <Drift view={value} />}
      </section>
      {value.status !== null && (
        <>
          <section class="panel" aria-label="Limits">
            <h2>Limits and their use</h2>
            <Limits status={value.status} />
          </section>
          <section class="panel" aria-label="Kubernetes Events">
            <h2>Kubernetes Events of this daemon</h2>
            <Events status={value.status} />
          </section>
        </>
      )}
      <section class="panel" aria-label="Daemon">
        <h2>Daemon</h2>
        <Facts view={value} />
        {value.status !== null && <Command line={`turnout status ${page.flags}`.trim()} />}
      </section>
      <section class="panel across" aria-label="Configuration">
        <h2>Configuration in force</h2>
        <pre tabIndex={0}>{value.configuration}</pre>
      </section>
    </div>
  );
}

function Syncs({
  points,
  hasDaemon,
}: {
  readonly points: readonly SyncPoint[];
  readonly hasDaemon: boolean;
}) {
  if (!hasDaemon)
    return (
      <Message title="No daemon">
        The cluster is read from its source; nothing is written to a kernel.
      </Message>
    );
  if (points.length === 0) return <Message title="No Sync yet" />;
  return (
    <>
      <SyncChart points={points} />
      <div class="scroll short" tabIndex={0} role="region" aria-label="Latest Syncs">
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">Family</th>
              <th scope="col">Cause</th>
              <NumberHead>Service ports</NumberHead>
              <NumberHead>Operations</NumberHead>
              <NumberHead>Duration</NumberHead>
              <th scope="col">Outcome</th>
            </tr>
          </thead>
          <tbody>
            {points
              .slice(-50)
              .toReversed()
              .map((point, i) => (
                <tr key={i}>
                  <td>{clockTime(point.at)}</td>
                  <td>{point.family === "ipv4" ? "IPv4" : "IPv6"}</td>
                  <td class="cause">
                    {triggers[point.trigger]}
                    {point.trigger === "change" && point.objects.length === 0 && (
                      <span class="dim">: of the node itself, or without effect here</span>
                    )}
                    {point.objects.length > 0 && (
                      <span class="dim">
                        {": "}
                        <bdi>{point.objects.join(", ")}</bdi>
                      </span>
                    )}
                  </td>
                  <td class="number">{point.changedPorts}</td>
                  <td class="number">{point.operations}</td>
                  <td class="number">{millis(point.ms)}</td>
                  <td class={point.outcome === "ok" ? "" : "bad"}>
                    {point.outcome}
                    {point.message === "" ? "" : `: ${point.message}`}
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

const triggers: Readonly<Record<SyncPoint["trigger"], string>> = {
  first: "first",
  change: "change",
  retry: "retry after a failure",
  resync: "resync, which is periodic",
  drift: "drift: another program changed the rules",
};

function ProblemList({ view: { problems, moreProblems } }: { readonly view: NodeView }) {
  if (problems.length === 0) return <p class="empty">None: every object of the cluster could be used.</p>;
  return (
    <ul class="problems">
      {problems.map((line) => (
        <li key={line}>
          <bdi>{line}</bdi>
        </li>
      ))}
      {moreProblems > 0 && <li>and {count(moreProblems, "more problem")}</li>}
    </ul>
  );
}

function Drift({ view: { status } }: { readonly view: NodeView }) {
  return (
    <>
      <h3>Changes by other programs, repaired</h3>
      <ul class="problems repaired">
        {status!.drift.map(({ at, family, differences, what }) => (
          <li key={`${at} ${family}`}>
            {clockTime(at)}, {family}: {differences} repaired: <bdi>{what}</bdi>
          </li>
        ))}
      </ul>
    </>
  );
}

function Facts({ view: { status, head } }: { readonly view: NodeView }) {
  const now = useNow();
  const watches = Object.entries(status?.watches ?? {});
  return (
    <dl class="trace">
      <dt>version</dt>
      <dd>{head.version}</dd>
      <dt>mode</dt>
      <dd>
        {head.mode}
        {status?.ownership === "owned" ? ", no other program can change its table" : ""}
      </dd>
      <dt>source</dt>
      <dd>{head.source}</dd>
      {head.startedAt !== null && (
        <>
          <dt>up</dt>
          <dd>
            {span(now - head.startedAt)}
            {status === null ? "" : `, process ${status.pid}`}
          </dd>
        </>
      )}
      {head.reasons.length > 0 && (
        <>
          <dt>health</dt>
          <dd>{head.reasons.join("; ")}</dd>
        </>
      )}
      {watches.map(([kind, watch]) => (
        <>
          <dt key={kind}>{kind}</dt>
          <dd>
            {watch.synced ? "synced" : "not synced yet"}
            {watch.lastEventAt === null ? "" : `, last event ${span(now - watch.lastEventAt)} ago`}
            {watch.lastError === null
              ? ""
              : `, last error ${span(now - watch.lastError.at)} ago: ${watch.lastError.message}`}
          </dd>
        </>
      ))}
    </dl>
  );
}
