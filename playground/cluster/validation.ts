// Validates objects: unknown fields, types and values. Pure.
import { badRequest, Failure } from "../api/http/failure.ts";
import { type FieldError, fieldErrors, invalidValue, valueError } from "../api/objects/fields.ts";
import { type ApiObject, type Draft, dig, hasLabels, isMap, mapsIn, scalar } from "../api/objects/object.ts";
import { schemas } from "../api/objects/schemas.ts";
import { nodePlaces } from "../net/layout.ts";
import { fitted } from "./service-shape.ts";
import { labelErrors, serviceErrors } from "./validate-service.ts";

/** Throws Failure for an invalid object. `strict`: unknown fields are an error too. */
export function check(kind: string, draft: Draft, old: ApiObject | null, strict: boolean): void {
  checkFields(kind, draft, strict);
  checkValues(kind, kind === "Service" ? fitted(draft, old) : draft, old);
}

function checkFields(kind: string, draft: Draft, strict: boolean): void {
  const schema = schemas[kind];
  if (schema === undefined) return;
  const found = fieldErrors(draft, schema, "");
  const unknown = found.filter((each) => each.kind === "unknown");
  if (strict && unknown.length > 0)
    throw badRequest(`strict decoding error: ${unknown.map(({ message }) => message).join(", ")}`);
  const types = found.filter((each) => each.kind === "type");
  if (types.length > 0)
    throw badRequest(
      `${kind} cannot be read: ${types.map(({ path, message }) => `${path}: ${message}`).join(", ")}`,
    );
}

function checkValues(kind: string, draft: Draft, old: ApiObject | null): void {
  const schema = schemas[kind];
  if (schema === undefined) return;
  const values = fieldErrors(draft, schema, "").filter((each) => each.kind === "value");
  refuse(kind, draft, [
    ...values,
    ...nameErrors(kind, draft),
    ...labelErrors("metadata.labels", draft.metadata?.labels),
    ...(checksByKind[kind]?.(draft, old) ?? []),
  ]);
}

function refuse(kind: string, draft: Draft, found: readonly FieldError[]): void {
  if (found.length === 0) return;
  const name = draft.metadata?.name ?? "";
  const texts = found.map(({ path, message }) => `${path}: ${message}`);
  const why = texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`;
  throw new Failure(422, "Invalid", `${kind} ${JSON.stringify(name)} is invalid: ${why}`, {
    kind,
    name,
    causes: found.map(({ path, message }) => ({ reason: "FieldValueInvalid", message, field: path })),
  });
}

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function nameErrors(kind: string, { metadata }: Draft): FieldError[] {
  const name = metadata?.name;
  if (name === undefined || kind === "Event") return [];
  if ((kind === "Pod" || kind === "Deployment") && name.length > 63) {
    const why =
      "must have at most 63 characters here, because it is part of the name of the network namespace";
    return [invalidValue("metadata.name", name, why)];
  }
  const short = kind === "Service" || kind === "Namespace";
  if ((short ? label : subdomain).test(name)) return [];
  const dots = short ? "" : " or '.'";
  return [
    invalidValue(
      "metadata.name",
      name,
      `must consist of lower case letters, digits, '-'${dots}, and begin and end with a letter or digit${short ? ", at most 63 of them" : ""}; for example "my-name"`,
    ),
  ];
}

type KindCheck = (draft: Draft, old: ApiObject | null) => FieldError[];

const checksByKind: Readonly<Record<string, KindCheck>> = {
  Service: serviceErrors,
  Node: nodeErrors,
  Deployment: (draft, old) => [
    ...replicaErrors(draft),
    ...pauseErrors(draft),
    ...selectorErrors(draft, old),
    ...containerErrors(draft, "spec.template.spec"),
  ],
  Pod: (draft) => containerErrors(draft, "spec"),
};

function nodeErrors(draft: Draft, old: ApiObject | null): FieldError[] {
  const names = nodePlaces.map(({ name }) => name);
  const [name, before, range] = [
    draft.metadata?.name ?? "",
    dig(old, "spec.podCIDR"),
    dig(draft, "spec.podCIDR"),
  ];
  return [
    ...(names.includes(name)
      ? []
      : [invalidValue("metadata.name", name, `the nodes of the playground are ${names.join(" and ")}`)]),
    ...(old === null || before === range
      ? []
      : [invalidValue("spec.podCIDR", range, `may not change once set: it is ${scalar(before)}`)]),
  ];
}

/** Every port is a socket on this machine. */
const containerPortLimit = 100;

function containerErrors(draft: Draft, path: string): FieldError[] {
  const count = mapsIn(dig(draft, `${path}.containers`)).flatMap(({ ports }) => mapsIn(ports)).length;
  if (count > containerPortLimit) {
    const why = `a playground pod has at most ${containerPortLimit} container ports, not ${count}`;
    return [valueError(`${path}.containers`, `Too many: ${why}`)];
  }
  return mapsIn(dig(draft, `${path}.containers`)).flatMap((container, i) =>
    mapsIn(container.ports).flatMap(({ containerPort: port }, j) =>
      typeof port === "number" && (port < 1 || port > 65_535)
        ? [
            invalidValue(
              `${path}.containers[${i}].ports[${j}].containerPort`,
              port,
              "must be from 1 to 65535",
            ),
          ]
        : [],
    ),
  );
}

function replicaErrors(draft: Draft): FieldError[] {
  const replicas = dig(draft, "spec.replicas");
  if (typeof replicas !== "number" || (replicas >= 0 && replicas <= 100)) return [];
  return [
    invalidValue(
      "spec.replicas",
      replicas,
      "must be from 0 to 100, because every pod is a network namespace of this machine",
    ),
  ];
}

function pauseErrors(draft: Draft): FieldError[] {
  if (dig(draft, "spec.paused") !== true) return [];
  return [valueError("spec.paused", "Forbidden: the playground does not support pausing rollouts")];
}

function selectorErrors(draft: Draft, old: ApiObject | null): FieldError[] {
  const wanted = dig(draft, "spec.selector.matchLabels");
  const labels = dig(draft, "spec.template.metadata.labels");
  if (!isMap(wanted) || Object.keys(wanted).length === 0)
    return [valueError("spec.selector.matchLabels", "Required value: for example {app: web}")];
  const before = dig(old, "spec.selector.matchLabels");
  if (isMap(before) && JSON.stringify(sorted(before)) !== JSON.stringify(sorted(wanted)))
    return [invalidValue("spec.selector", wanted, "may not change once set")];
  const matches = isMap(labels) && hasLabels(labels as Record<string, string>, wanted);
  return matches
    ? []
    : [
        invalidValue(
          "spec.template.metadata.labels",
          labels ?? {},
          `must match spec.selector ${JSON.stringify(wanted)}`,
        ),
      ];
}

function sorted(map: Record<string, unknown>): unknown {
  return Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
}
