// A Kubernetes Event of this proxy: what may be reported, and its form in the events.k8s.io API.

/** Everything kube-proxy reports; reasons, actions and types are contracts. */
export const eventReasons = {
  Starting: { type: "Normal", action: "StartKubeProxy" },
  KubeProxyDefaultMode: { type: "Warning", action: "StartKubeProxy" },
  IPVSDeprecation: { type: "Warning", action: "StartKubeProxy" },
  FailedToStartProxierHealthcheck: { type: "Warning", action: "StartKubeProxy" },
  FailedToStartMetricServer: { type: "Warning", action: "StartKubeProxy" },
  FailedToStartServiceHealthcheck: { type: "Warning", action: "Listen" },
} as const;

export type EventReason = keyof typeof eventReasons;

/** What an Event is about. */
export type Regarding =
  | { readonly kind: "Node"; readonly name: string }
  | { readonly kind: "Service"; readonly namespace: string; readonly name: string };

export type Reporter = { readonly reportingController: string; readonly reportingInstance: string };

/** A request to the API server. */
export type EventRequest = {
  readonly method: "POST" | "PATCH";
  readonly path: string;
  readonly contentType: "application/json" | "application/strategic-merge-patch+json";
  readonly body: string;
};

/** One Event, and how often it happened: a count from 2 on makes it a series. */
export type ProxyEvent = {
  readonly name: string;
  readonly reason: EventReason;
  readonly regarding: Regarding;
  readonly note: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly count: number;
  readonly lastAt: number;
};

/** The API refuses longer notes. */
const longestNote = 1024;
const longestName = 253;

/** Creates the Event, with its series if it has one. */
export function createRequest(event: ProxyEvent, reporter: Reporter): EventRequest {
  const { reason, regarding, note } = event;
  const { type, action } = eventReasons[reason];
  const body = {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: event.name, namespace: namespaceOf(regarding) },
    eventTime: microTime(event.at),
    ...reporter,
    action,
    reason,
    regarding: { apiVersion: "v1", ...regarding },
    note: shortened(note),
    type,
    ...series(event),
  };
  return {
    method: "POST",
    path: pathOf(regarding),
    contentType: "application/json",
    body: JSON.stringify(body),
  };
}

/** The update of an existing Event: how often it has occurred. */
export function seriesRequest(event: ProxyEvent): EventRequest {
  return {
    method: "PATCH",
    path: `${pathOf(event.regarding)}/${event.name}`,
    contentType: "application/strategic-merge-patch+json",
    body: JSON.stringify(series(event)),
  };
}

/** `<object>.<hex nanoseconds>`, shortened where a long object name leaves no room. */
export function eventName(regarding: Regarding, nanoseconds: bigint): string {
  const suffix = `.${nanoseconds.toString(16)}`;
  return `${regarding.name.slice(0, longestName - suffix.length).replace(/[-.]+$/, "")}${suffix}`;
}

/** Equal for Events that form a series. */
export function seriesKey(reason: EventReason, regarding: Regarding): string {
  return `${reason} ${regarding.kind} ${namespaceOf(regarding)}/${regarding.name}`;
}

function series({ count, lastAt }: ProxyEvent): object {
  return count < 2 ? {} : { series: { count, lastObservedTime: microTime(lastAt) } };
}

function pathOf(regarding: Regarding): string {
  return `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespaceOf(regarding))}/events`;
}

/** A Node has no namespace; its Events are kept here. */
function namespaceOf(regarding: Regarding): string {
  return regarding.kind === "Service" ? regarding.namespace : "default";
}

function microTime(at: number): string {
  return new Date(at).toISOString().replace("Z", "000Z");
}

/** In bytes, as the API counts. */
function shortened(note: string): string {
  let short = note.length > longestNote ? note.slice(0, longestNote) : note;
  while (Buffer.byteLength(short) > longestNote) short = short.slice(0, -1);
  return short;
}
