// The annotation in which kubectl records what it applied from its own side: what `kubectl apply --server-side` makes of it.
import { type Draft, isMap, scalar } from "./object.ts";

/** Who says another name keeps both ways to apply apart. */
const kubectl = "kubectl";
const annotation = "kubectl.kubernetes.io/last-applied-configuration";

/** null: it is not this manager's, there is none, or it cannot be read as an object of this version. */
export function lastApplied(object: Draft | null, manager: string, apiVersion: string): Draft | null {
  const record = manager === kubectl ? parsed(textOf(object)) : null;
  return isMap(record) && record.apiVersion === apiVersion ? (record as Draft) : null;
}

/** Where there is a record, it follows what was applied from the server's side, so that kubectl may go back to its own. */
export function recorded(object: Draft, asked: Draft, manager: string): Draft {
  if (manager !== kubectl || textOf(object) === "") return object;
  const annotations = {
    ...annotationsOf(object),
    [annotation]: `${JSON.stringify(sorted(withoutRecord(asked)))}\n`,
  };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

function textOf(object: Draft | null): string {
  return scalar(annotationsOf(object)[annotation]);
}

function annotationsOf(object: Draft | null): Readonly<Record<string, unknown>> {
  const annotations = object?.metadata?.annotations;
  return isMap(annotations) ? annotations : {};
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A record does not hold itself. */
function withoutRecord(asked: Draft): Draft {
  if (!isMap(asked.metadata?.annotations)) return asked;
  const { [annotation]: _, ...annotations } = asked.metadata.annotations;
  return { ...asked, metadata: { ...asked.metadata, annotations } };
}

/** Names in the order in which Go writes them. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  );
}
