// Label and field selectors as the API writes them: `app=web,tier in (a,b),!legacy`, `spec.clusterIP!=None`.
import { badRequest } from "../http/failure.ts";
import { type ApiObject, own } from "./object.ts";
import { fieldValue, type Resource } from "./resources.ts";

export type Matcher = (object: ApiObject) => boolean;

/** Both selectors of a request in one test. Throws Failure 400 on bad syntax or an unknown field. */
export function matcher(resource: Resource, labelSelector: string, fieldSelector: string): Matcher {
  const labels = splitTerms(labelSelector).map(labelTerm);
  const fields = splitTerms(fieldSelector).map((term) => fieldTerm(resource, term));
  return (object) =>
    labels.every((matches) => matches(object.metadata.labels ?? {})) &&
    fields.every((matches) => matches(object));
}

type LabelTest = (labels: Readonly<Record<string, string>>) => boolean;

const labelKey = "[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?";
const setTerm = new RegExp(`^(${labelKey})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const equalTerm = new RegExp(`^(${labelKey})\\s*(==|=|!=)\\s*([-A-Za-z0-9_.]*)$`);
const presenceTerm = new RegExp(`^(!?)\\s*(${labelKey})$`);

function labelTerm(term: string): LabelTest {
  const set = setTerm.exec(term);
  if (set) {
    const [, key, operator, list] = set as unknown as [string, string, string, string];
    const values: ReadonlySet<string | undefined> = new Set(list.split(",").map((value) => value.trim()));
    // `notin` and `!=` also match objects without the label.
    return operator === "in"
      ? (labels) => values.has(own(labels, key))
      : (labels) => !values.has(own(labels, key));
  }
  const equal = equalTerm.exec(term);
  if (equal) {
    const [, key, operator, value] = equal as unknown as [string, string, string, string];
    return operator === "!="
      ? (labels) => own(labels, key) !== value
      : (labels) => own(labels, key) === value;
  }
  const presence = presenceTerm.exec(term);
  if (presence) {
    const [, not, key] = presence as unknown as [string, string, string];
    return not === "!"
      ? (labels) => own(labels, key) === undefined
      : (labels) => own(labels, key) !== undefined;
  }
  throw badRequest(`unable to parse requirement: ${JSON.stringify(term)}`);
}

function fieldTerm(resource: Resource, term: string): Matcher {
  const parts = /^([^=!]+)(==|=|!=)((?:\\.|[^\\=])*)$/.exec(term);
  if (!parts) throw badRequest(`invalid selector: ${JSON.stringify(term)}; can't understand it`);
  const [, field, operator, escaped] = parts as unknown as [string, string, string, string];
  const value = escaped.replace(/\\(.)/g, "$1");
  const probe = {
    apiVersion: "",
    kind: "",
    metadata: { name: "", uid: "", resourceVersion: "", creationTimestamp: "" },
  };
  if (fieldValue(resource, field, probe) === null) throw badRequest(`field label not supported: ${field}`);
  return (object) => (fieldValue(resource, field, object) === value) === (operator !== "!=");
}

/** Splits at commas that are neither inside parentheses nor escaped. */
function splitTerms(selector: string): string[] {
  const terms: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i <= selector.length; i++) {
    const c = selector[i];
    if (c === "\\") i++;
    else if (c === "(") depth++;
    else if (c === ")") depth--;
    else if (c === undefined || (c === "," && depth === 0)) {
      terms.push(selector.slice(start, i).trim());
      start = i + 1;
    }
  }
  return terms.filter((term) => term !== "");
}
