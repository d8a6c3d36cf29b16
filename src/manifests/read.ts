// Reads fields of JSON that may hold anything: what is wrong becomes a Problem, never an exception.
import { type Problem, type ProblemKind, quoted } from "../model/problem.ts";
import { describe, type Identity, isName, isNamespaced } from "./identity.ts";
import type { Raw } from "./objects.ts";

/** What was found wrong with one object. A field of the wrong type refuses the whole object, as Go's decoder would. */
export type Report = {
  readonly who: Identity;
  problems: readonly Problem[];
  unlisted: number;
  refused: boolean;
};

/** An object in the model's types; null when it is not for this proxy or was refused. */
export type Parsed<T> = { readonly value: T | null; readonly problems: readonly Problem[] };

/** More than this of one object would not be read by anyone, and a hostile one could fill the memory. */
const listedAtMost = 20;

export function reportOn(who: Identity): Report {
  return { who, problems: noProblems, unlisted: 0, refused: false };
}

/** One empty list for all: hardly any object has Problems. */
const noProblems: readonly Problem[] = [];

export function addProblem(report: Report, kind: ProblemKind, field: string, message: string): void {
  // For a refused object, report only the reasons.
  if (report.refused && kind !== "wrong-type") return;
  if (report.problems.length >= listedAtMost) report.unlisted++;
  else report.problems = [...report.problems, { kind, object: describe(report.who), field, message }];
}

/** Closes the report: `value` counts only if nothing in the object had the wrong type. */
export function parsed<T>(report: Report, value: T | null): Parsed<T> {
  if (report.unlisted > 0) {
    const message = `has ${report.unlisted} more problems that are not listed`;
    const rest: Problem = { kind: "ignored", object: describe(report.who), field: "", message };
    report.problems = [...report.problems, rest];
  }
  return { value: report.refused ? null : value, problems: report.problems };
}

// In all of these, null counts as absent, as it does in Go.

/** Text; empty when absent. */
export function text(report: Report, value: unknown, at: string, field: string): string {
  if (typeof value === "string") return value;
  if (value !== undefined && value !== null) refuse(report, "text", value, at, field);
  return "";
}

/** A whole number of 32 bits; null when absent. */
export function integer(report: Report, value: unknown, at: string, field: string): number | null {
  if (typeof value === "number" && (value | 0) === value) return value;
  if (value !== undefined && value !== null) refuse(report, "a whole number", value, at, field);
  return null;
}

/** True or false; `absent` when there is nothing. */
export function flag(report: Report, value: unknown, absent: boolean, at: string, field: string): boolean {
  if (typeof value === "boolean") return value;
  if (value !== undefined && value !== null) refuse(report, "true or false", value, at, field);
  return absent;
}

/** A list; empty when absent. */
export function list(report: Report, value: unknown, at: string, field: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (value !== undefined && value !== null) refuse(report, "a list", value, at, field);
  return nothing;
}

/** An object; without fields when absent. */
export function fields(report: Report, value: unknown, at: string, field: string): Raw {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Raw;
  if (value !== undefined && value !== null) refuse(report, "an object", value, at, field);
  return noFields;
}

/** A list of texts, with their indices in Problems. */
export function texts(report: Report, value: unknown, at: string, field: string): readonly string[] {
  const items = list(report, value, at, field);
  if (items.every(isText)) return items;
  return items.map((item, i) => text(report, item, at, `${field}[${i}]`));
}

function isText(item: unknown): item is string {
  return typeof item === "string";
}

/** A port number 1–65535; null, with a Problem, when it is another number; null when absent. */
export function portNumber(report: Report, value: unknown, at: string, field: string): number | null {
  const port = integer(report, value, at, field);
  if (port === null || (port >= 1 && port <= 65535)) return port;
  addProblem(report, "invalid-port", path(at, field), `is ${port}, not a port between 1 and 65535`);
  return null;
}

/** Whether the object has names that Kubernetes could have given it; a Problem if not. */
export function hasLegalNames(report: Report): boolean {
  const { kind, namespace, name } = report.who;
  const legalNamespace = !isNamespaced(kind) || isLegal(report, namespace, "metadata.namespace");
  return isLegal(report, name, "metadata.name") && legalNamespace;
}

function isLegal(report: Report, name: string, field: string): boolean {
  if (isName(name)) return true;
  if (name === "") addProblem(report, "missing-field", field, "is missing; the object is ignored");
  else addProblem(report, "invalid-name", field, "is not a legal name; the object is ignored");
  return false;
}

/** A name; empty, with a Problem, when it is illegal; empty when absent. */
export function nameOrNothing(report: Report, value: unknown, at: string, field: string): string {
  const name = text(report, value, at, field);
  if (name === "" || isName(name)) return name;
  addProblem(report, "invalid-name", path(at, field), `is ${quoted(name)}, not a legal name`);
  return "";
}

/** Paths of the items of a list: made once and kept, for there are many items and hardly ever a Problem to place. */
export function placesIn(field: string): (index: number) => string {
  const known: string[] = [];
  return (index) => {
    const place = known[index] ?? `${field}[${index}]`;
    if (index === known.length && index < placesAtMost) known.push(place);
    return place;
  };
}

const placesAtMost = 1000;

const nothing: readonly unknown[] = [];
const noFields: Raw = {};

function refuse(report: Report, wanted: string, value: unknown, at: string, field: string): void {
  if (!report.refused) {
    report.refused = true;
    report.problems = noProblems;
    report.unlisted = 0;
  }
  addProblem(
    report,
    "wrong-type",
    path(at, field),
    `is ${typeName(value)}, not ${wanted}; the object is ignored`,
  );
}

function path(at: string, field: string): string {
  return at === "" ? field : `${at}.${field}`;
}

function typeName(value: unknown): string {
  if (typeof value === "string") return `the text ${quoted(value)}`;
  if (typeof value === "number") return `the number ${value}`;
  if (typeof value === "boolean") return String(value);
  return Array.isArray(value) ? "a list" : "an object";
}
