// What is wrong with an object somebody writes: fields that do not exist, values that cannot be. Pure.
import { contains, parseAddress } from "../../model/address.ts";
import { badRequest, Failure } from "../api/failure.ts";
import { type Objection, objections } from "../api/fields.ts";
import { type ApiObject, type Draft, dig, isMap, scalar } from "../api/object.ts";
import { schemas } from "../api/schemas.ts";
import { serviceCIDRs } from "../net/layout.ts";

/** Throws Failure when something is wrong. `strict`: fields nobody knows are an error too. */
export function check(kind: string, draft: Draft, old: ApiObject | null, strict: boolean): void {
  const schema = schemas[kind];
  if (schema === undefined) return;
  const found = objections(draft, schema, "");
  const unknown = found.filter((each) => each.kind === "unknown");
  if (strict && unknown.length > 0)
    throw badRequest(`strict decoding error: ${unknown.map(({ message }) => message).join(", ")}`);
  const types = found.filter((each) => each.kind === "type");
  if (types.length > 0)
    throw badRequest(
      `${kind} cannot be read: ${types.map(({ path, message }) => `${path}: ${message}`).join(", ")}`,
    );
  const values = found.filter((each) => each.kind === "value");
  refuse(kind, draft, [...values, ...nameObjections(kind, draft), ...(own[kind]?.(draft, old) ?? [])]);
}

function refuse(kind: string, draft: Draft, found: readonly Objection[]): void {
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

const value = (path: string, message: string): Objection => ({ kind: "value", path, message });
const wrong = (path: string, given: unknown, why: string) =>
  value(path, `Invalid value: ${JSON.stringify(given)}: ${why}`);

const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const subdomain = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function nameObjections(kind: string, { metadata }: Draft): Objection[] {
  const name = metadata?.name;
  if (name === undefined || kind === "Event") return [];
  const short = kind === "Service" || kind === "Namespace";
  if ((short ? label : subdomain).test(name)) return [];
  const dots = short ? "" : " or '.'";
  return [
    wrong(
      "metadata.name",
      name,
      `must consist of lower case letters, digits, '-'${dots}, and begin and end with a letter or digit${short ? ", at most 63 of them" : ""}; for example "my-name"`,
    ),
  ];
}

type Own = (draft: Draft, old: ApiObject | null) => Objection[];

const own: Readonly<Record<string, Own>> = {
  Service: (draft, old) => [
    ...portObjections(draft),
    ...addressObjections(draft, old),
    ...policyObjections(draft),
  ],
  Deployment: (draft, old) => [...replicaObjections(draft), ...selectorObjections(draft, old)],
};

function portObjections(draft: Draft): Objection[] {
  const ports = mapsIn(dig(draft, "spec.ports"));
  const isPort = (number: unknown) => typeof number !== "number" || (number >= 1 && number <= 65_535);
  const seen = new Set<string>();
  return ports.flatMap((port, i) => {
    const path = `spec.ports[${i}]`;
    const { name = "", nodePort, targetPort } = port;
    const key = `${scalar(port.port)}/${scalar(port.protocol) || "TCP"}`;
    const found = [
      ...(isPort(port.port) ? [] : [wrong(`${path}.port`, port.port, "must be from 1 to 65535")]),
      ...(isPort(targetPort) ? [] : [wrong(`${path}.targetPort`, targetPort, "must be from 1 to 65535")]),
      ...(typeof nodePort !== "number" || nodePort === 0 || (nodePort >= 30_000 && nodePort <= 32_767)
        ? []
        : [wrong(`${path}.nodePort`, nodePort, "provided port is not in the valid range 30000-32767")]),
      ...(ports.length > 1 && name === ""
        ? [value(`${path}.name`, "Required value: there are several ports")]
        : []),
      ...(name !== "" && seen.has(scalar(name))
        ? [value(`${path}.name`, `Duplicate value: ${JSON.stringify(name)}`)]
        : []),
      ...(seen.has(key) ? [value(path, `Duplicate value: ${JSON.stringify(key)}`)] : []),
    ];
    seen.add(key).add(scalar(name));
    return found;
  });
}

function addressObjections(draft: Draft, old: ApiObject | null): Objection[] {
  const given = dig(draft, "spec.clusterIP");
  if (typeof given !== "string" || given === "" || given === "None") return [];
  const before = scalar(dig(old, "spec.clusterIP"));
  if (before !== "" && before !== given && scalar(dig(draft, "spec.type")) !== "ExternalName")
    return [wrong("spec.clusterIP", given, `may not change once set: it is ${before}`)];
  const address = parseAddress(given);
  const inside = address !== null && Object.values(serviceCIDRs).some((cidr) => contains(cidr, address));
  return inside
    ? []
    : [wrong("spec.clusterIP", given, `must be an address of ${Object.values(serviceCIDRs).join(" or ")}`)];
}

function policyObjections(draft: Draft): Objection[] {
  const type = scalar(dig(draft, "spec.type")) || "ClusterIP";
  const outside =
    type === "NodePort" || type === "LoadBalancer" || dig(draft, "spec.externalIPs") !== undefined;
  const policy = dig(draft, "spec.externalTrafficPolicy");
  return [
    ...(policy === "Local" && !outside
      ? [wrong("spec.externalTrafficPolicy", policy, `nobody calls a Service of type ${type} from outside`)]
      : []),
    ...(type === "ExternalName" && scalar(dig(draft, "spec.externalName")) === ""
      ? [value("spec.externalName", 'Required value: for example "example.com"')]
      : []),
  ];
}

function replicaObjections(draft: Draft): Objection[] {
  const replicas = dig(draft, "spec.replicas");
  if (typeof replicas !== "number" || (replicas >= 0 && replicas <= 100)) return [];
  return [
    wrong(
      "spec.replicas",
      replicas,
      "must be from 0 to 100: every pod is a network namespace of this machine",
    ),
  ];
}

function selectorObjections(draft: Draft, old: ApiObject | null): Objection[] {
  const wanted = dig(draft, "spec.selector.matchLabels");
  const labels = dig(draft, "spec.template.metadata.labels");
  if (!isMap(wanted) || Object.keys(wanted).length === 0)
    return [value("spec.selector.matchLabels", "Required value: for example {app: web}")];
  const before = dig(old, "spec.selector.matchLabels");
  if (isMap(before) && JSON.stringify(sorted(before)) !== JSON.stringify(sorted(wanted)))
    return [wrong("spec.selector", wanted, "may not change once set")];
  const matches = Object.entries(wanted).every(([key, each]) => isMap(labels) && labels[key] === each);
  return matches
    ? []
    : [wrong("spec.template.metadata.labels", labels ?? {}, `spec.selector wants ${JSON.stringify(wanted)}`)];
}

function sorted(map: Record<string, unknown>): unknown {
  return Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
}

function mapsIn(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter(isMap) : [];
}
