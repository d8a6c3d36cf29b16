// Events for `kubectl get events` and `kubectl describe`, in both API groups. Pure.
import { type ApiObject, type Draft, dig, isMap, scalar } from "../api/objects/object.ts";

type Event = Draft & { readonly kind: "Event"; readonly apiVersion: string };

/** An Event of an object; `serial` makes its name unique. */
export function eventFor(
  { apiVersion, kind, metadata }: ApiObject,
  reason: string,
  note: string,
  serial: number,
  now: number,
): Event {
  const { name, namespace = "default", uid } = metadata;
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: `${name}.${serial.toString(16).padStart(8, "0")}`, namespace },
    type: reason.startsWith("Failed") || reason === "Unready" ? "Warning" : "Normal",
    reason,
    action: reason,
    note,
    regarding: { apiVersion, kind, name, namespace: metadata.namespace, uid },
    eventTime: new Date(now).toISOString().replace("Z", "000Z"),
    reportingController: "playground",
    reportingInstance: "playground",
  };
}

/** The same Event in the core API group. */
export function coreEvent(event: ApiObject): Event {
  const time = scalar(event.eventTime);
  const last = scalar(dig(event, "series.lastObservedTime")) || time;
  const seconds = (text: string) => text.replace(/\.\d+Z$/, "Z");
  const { name, namespace } = event.metadata;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    type: event.type,
    reason: event.reason,
    message: event.note,
    involvedObject: isMap(event.regarding) ? event.regarding : {},
    source: { component: event.reportingController },
    firstTimestamp: seconds(time),
    lastTimestamp: seconds(last),
    count: Number(dig(event, "series.count") ?? 1),
    reportingComponent: event.reportingController,
    reportingInstance: event.reportingInstance,
  };
}
