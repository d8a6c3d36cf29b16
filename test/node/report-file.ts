// The report in a folder: as JSON, from which a later run of a part continues, and as Markdown.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Disturbed, printReport, type Report, type Run } from "./report.ts";

/** Of a run that was made before; an empty one where there is none. */
export function readReport(folder: string): Report {
  const file = join(folder, "report.json");
  if (!existsSync(file)) return { versions: {}, runs: [], disturbed: [] };
  const { runs, ...rest } = JSON.parse(readFileSync(file, "utf8")) as Report;
  return {
    ...rest,
    runs: runs.map((run) => ({ ...run, results: new Map(Object.entries(run.results)) })),
  };
}

export function writeReport(folder: string, report: Report): void {
  const runs = report.runs.map((run) => ({ ...run, results: Object.fromEntries(run.results) }));
  writeFileSync(join(folder, "report.json"), `${JSON.stringify({ ...report, runs }, null, 2)}\n`);
  writeFileSync(join(folder, "report.md"), printReport(report));
}

/** What was run again replaces what the report had of it, by spec and disturbance; the rest is kept. */
export function merged(old: Report, made: Report): Report {
  return {
    versions: { ...old.versions, ...made.versions },
    runs: byLabel(old.runs, made.runs, mergedRun),
    disturbed: byLabel(old.disturbed, made.disturbed, mergedDisturbed),
  };
}

/** The time is that of the larger part. */
function mergedRun(old: Run, made: Run): Run {
  const { took } = old.results.size > made.results.size ? old : made;
  return { ...made, took, results: new Map([...old.results, ...made.results]) };
}

function mergedDisturbed(old: Disturbed, made: Disturbed): Disturbed {
  const { took } = old.failures.length > made.failures.length ? old : made;
  const failures = new Map([...old.failures, ...made.failures].map((each) => [each.disturbance, each]));
  return { ...made, took, failures: [...failures.values()] };
}

function byLabel<T extends { readonly label: string }>(
  old: readonly T[],
  made: readonly T[],
  both: (old: T, made: T) => T,
): readonly T[] {
  const again = (label: string): T | undefined => made.find((each) => each.label === label);
  const isNew = ({ label }: T): boolean => old.every((each) => each.label !== label);
  return [
    ...old.map((each) => {
      const found = again(each.label);
      return found === undefined ? each : both(each, found);
    }),
    ...made.filter(isNew),
  ];
}
