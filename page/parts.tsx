// Small parts that several views share.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { EndpointCounts, Level } from "../src/page/json.ts";

/** A command line that shows the same in a terminal. */
export function Command({ line }: { readonly line: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return () => {};
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => void navigator.clipboard?.writeText(line).then(() => setCopied(true));
  return (
    <div class="command">
      <code>{line}</code>
      <button type="button" class="link" onClick={copy} aria-label={`Copy the command: ${line}`}>
        {copied ? "copied" : "copy"}
      </button>
      <span role="status" class="visually-hidden">
        {copied ? "The command was copied" : ""}
      </span>
    </div>
  );
}

export function Message({
  title,
  children,
  tone = "plain",
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly tone?: "plain" | "bad";
}) {
  return (
    <div class={`message ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      <strong>{title}</strong>
      {children !== undefined && <div>{children}</div>}
    </div>
  );
}

/** In place of a view that has no data yet, or for which the request failed. */
export function NoData({ error, title }: { readonly error: Error | null; readonly title: string }) {
  if (error === null) return <Message title="Loading…" />;
  return (
    <Message tone="bad" title={title}>
      <bdi>{error.message}</bdi>
    </Message>
  );
}

/** The heading of a column of numbers. */
export function NumberHead({ children }: { readonly children: ComponentChildren }) {
  return (
    <th scope="col" class="number">
      {children}
    </th>
  );
}

const toneOf: Readonly<Record<Level, string>> = { trouble: "bad", warning: "warn", ok: "quiet" };

export function State({ level, reasons }: { readonly level: Level; readonly reasons: readonly string[] }) {
  const [first = "ok", ...more] = reasons;
  return (
    <span class={`state ${toneOf[level]}`} title={reasons.join("\n")}>
      {level === "trouble" && <span aria-hidden="true">● </span>}
      {level === "warning" && <span aria-hidden="true">▲ </span>}
      <bdi>{first}</bdi>
      {more.length > 0 && ` +${more.length}`}
    </span>
  );
}

/** `3`, `3 of 4`, `1 + 1 terminating`. */
export function endpointText({ ready, draining, unready }: EndpointCounts): string {
  const all = ready + draining + unready;
  if (draining > 0) return `${ready} + ${draining} terminating`;
  return unready > 0 ? `${ready} of ${all}` : String(ready);
}

export function Endpoints({ counts }: { readonly counts: EndpointCounts }) {
  const { ready, draining, unready } = counts;
  return (
    <span class="endpoints">
      <svg class="bar" viewBox="0 0 64 8" aria-hidden="true" preserveAspectRatio="none">
        <rect width="64" height="8" class="none" />
        {parts([ready, draining, unready]).map(([x, width], i) => (
          <rect key={i} x={x} width={width} height="8" class={["good", "warn", "bad"][i]} />
        ))}
      </svg>
      {endpointText(counts)}
    </span>
  );
}

function parts(values: readonly number[]): [number, number][] {
  const total = values.reduce((sum, value) => sum + value, 0) || 1;
  let x = 0;
  return values.map((value) => {
    const width = (64 * value) / total;
    x += width;
    return [x - width, width];
  });
}
