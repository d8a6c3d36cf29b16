// As much of Helm's templates as our chart uses: values, `if`, `toYaml … | nindent`, and the API server's address of the
// values. Anything else is an error. test/chart.test.ts compares it with Helm.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments, stringify } from "yaml";

type Scope = Readonly<Record<string, unknown>>;

/** The objects that `helm template --namespace=NAMESPACE` prints, with values laid over those of the chart. */
export function renderChart(chart: string, namespace: string, values: Scope = {}): Scope[] {
  const text = (name: string) => readFileSync(join(chart, name), "utf8");
  const scope = {
    Values: laidOver(parse(text("values.yaml")) as Scope, values),
    Chart: parse(text("Chart.yaml")) as Scope,
    Release: { Namespace: namespace },
  };
  const templates = readdirSync(join(chart, "templates")).filter((name) => name.endsWith(".yaml"));
  return templates.flatMap((name) => objectsIn(render(text(`templates/${name}`), scope)));
}

export function objectsIn(yaml: string): Scope[] {
  return parseAllDocuments(yaml, { uniqueKeys: true }).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0]!;
    const object = document.toJS() as Scope | null;
    return object === null ? [] : [object];
  });
}

function render(template: string, scope: Scope): string {
  const trimmed = template.replace(/\s*{{-/g, "{{").replace(/-}}\s*/g, "}}");
  const open: boolean[] = [];
  const pieces = trimmed.split(/{{(.*?)}}/);
  const text = pieces.map((piece, i) => {
    if (i % 2 === 0) return open.every(Boolean) ? piece : "";
    const action = piece.trim();
    if (action.startsWith("if ")) open.push(isTrue(lookUp(action.slice(3), scope)));
    else if (action === "end") open.pop();
    else return open.every(Boolean) ? expanded(action, scope) : "";
    return "";
  });
  if (open.length > 0) throw new Error("Cannot read the template: an if has no end");
  return text.join("");
}

function expanded(action: string, scope: Scope): string {
  if (action === 'include "turnout.apiServer" .') return apiServer(scope);
  const [, path, indent] = /^toYaml (\S+) \| nindent (\d+)$/.exec(action) ?? [];
  if (path === undefined) return String(lookUp(action, scope));
  const lines = stringify(lookUp(path, scope)).trimEnd().split("\n");
  return lines.map((line) => `\n${" ".repeat(Number(indent))}${line}`).join("");
}

function apiServer(scope: Scope): string {
  const [host, port] = ["host", "port"].map((name) => String(lookUp(`.Values.apiServer.${name}`, scope)));
  if (host === "") throw new Error("Cannot render the template: .Values.apiServer.host is empty");
  return `${host}:${port}`;
}

function lookUp(path: string, scope: Scope): unknown {
  if (!/^(\.\w+)+$/.test(path)) throw new Error(`Cannot read the template: ${path}`);
  let value: unknown = scope;
  for (const key of path.slice(1).split(".")) {
    value = (value as Scope)[key];
    if (value === undefined) throw new Error(`Cannot render the template: there is no ${path}`);
  }
  return value;
}

/** Empty lists, maps and texts are false. */
function isTrue(value: unknown): boolean {
  if (typeof value === "object" && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function laidOver(under: Scope, over: Scope): Scope {
  const isMap = (value: unknown): value is Scope =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  const entries = Object.entries(over).map(([key, value]) => {
    const before = under[key];
    return [key, isMap(before) && isMap(value) ? laidOver(before, value) : value];
  });
  return { ...under, ...Object.fromEntries(entries) };
}
