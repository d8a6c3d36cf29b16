// The manual page of flags, fields and feature gates; made from their tables.
import { apiVersion, kind } from "../config.ts";
import { defaultOf, fieldAt, type Path, paths } from "../file/fields.ts";
import { kinds } from "../file/kinds.ts";
import { type FlagName, flagAt, flagNames, groups } from "../flags/table.ts";
import { flagTypes } from "../flags/types.ts";
import { gates } from "../gates/table.ts";

/** A flag of `turnout run` alone, with the environment variable that sets it. */
export type OwnFlag = {
  readonly name: string;
  readonly variable: string;
  readonly values: string;
  readonly about: string;
};

export function configurationPage(own: readonly OwnFlag[]): string {
  return [introduction, flagSections(), ownSection(own), fieldSection(), gateSection(), ""].join("\n\n");
}

const introduction = `# Configuration

<!-- Made from the tables in src/config; \`npx vitest run --project unit src/config/docs -u\` writes it again. -->

Turnout takes the flags and the configuration file of kube-proxy v1.37. It adds one mode, \`userspace\`, in which
\`portRange\` has a meaning again.

- With \`--config\`, the file counts and all flags are ignored but these: the logging flags and
  \`--hostname-override\` win over the file, \`--master\` is always honoured.
- Without \`--config\`, flags overwrite the built-in defaults.
- \`--write-config-to=FILE\` writes the effective configuration and exits: a way to turn flags into a file, and to
  check a file.
- An unknown or repeated field in the file is a remark in the log, with its line; any other mistake ends the
  program with exit code 1 and names the field, the rule and the line.
- Editors can check a file with [the JSON Schema](kube-proxy-configuration.schema.json): put
  \`# yaml-language-server: $schema=…/docs/kube-proxy-configuration.schema.json\` in its first line.

Exit codes: 0 for \`--help\`, \`--version\`, \`--write-config-to\`, and for \`--cleanup\` and \`--init-only\` that
succeed; 1 for every error, and when the configuration file changes while it runs.

Durations are numbers with units, such as \`300ms\`, \`30s\`, \`1h30m\`. Lists take commas and can be repeated.
An underscore in the name of a flag is a dash.`;

function flagSections(): string {
  const sections = groups.map((group) => {
    const names = flagNames.filter((name) => flagAt(name).group === group);
    const rows = names.map((name) => [flagText(name), defaultText(name), fieldText(name), flagNote(name)]);
    return `### ${group}\n\n${table(["Flag", "Default", "Field", "Meaning"], rows)}`;
  });
  return ["## Flags", ...sections].join("\n\n");
}

function ownSection(flags: readonly OwnFlag[]): string {
  const rows = flags.map(({ name, variable, values, about }) => [
    code(`--${name}`),
    code(variable),
    values,
    about,
  ]);
  return `## Turnout's own settings

\`turnout run\` has these flags in addition, beside a file too. \`kube-proxy\` has kube-proxy's flags only; both programs read the
environment variables, so a DaemonSet in which only the image was replaced can use them. A flag wins over its variable. A
variable that is set but empty is an empty value. A wrong value ends the program with exit code 1 and names the variable.

${table(["Flag", "Variable", "Values", "Meaning"], rows)}

\`TURNOUT_MODE\` is \`--proxy-mode\`, which does not count beside a file. The tools (\`turnout status\`, \`explain\`, …) read
\`TURNOUT_STATUS_SOCKET\` too, so that they find the daemon of their pod.`;
}

function flagText(name: FlagName): string {
  const { type, short } = flagAt(name);
  const { label } = flagTypes[type];
  const value = label === "" ? "" : label.startsWith("version") ? label.slice("version".length) : ` ${label}`;
  return `\`${short === undefined ? "" : `-${short}, `}--${name}${value}\``;
}

function defaultText(name: FlagName): string {
  const { type, default: value, defaultText: text } = flagAt(name);
  if (text !== undefined) return text;
  if (value === undefined) return "";
  return code((flagTypes[type].print as (value: unknown) => string)(value));
}

function fieldText(name: FlagName): string {
  return code(flagAt(name).config ?? "");
}

function flagNote(name: FlagName): string {
  const { about, deprecated } = flagAt(name);
  return deprecated === undefined ? about : `Deprecated: ${deprecated}. ${about}`;
}

function fieldSection(): string {
  const rows = paths.map((path) => [
    code(path),
    kinds[fieldAt(path).kind].label,
    fieldDefault(path),
    fieldNote(path),
  ]);
  return `## The file

\`\`\`yaml
apiVersion: ${apiVersion}
kind: ${kind}
mode: nftables
\`\`\`

Where the last column says *0 means the default*, a zero or empty value in the file counts as not given.

${table(["Field", "Type", "Default", "Meaning"], rows)}`;
}

function fieldDefault(path: Path): string {
  const text = fieldAt(path).defaultText;
  if (text !== undefined) return text;
  const value = defaultOf(path);
  return value === "" ? "empty" : code(JSON.stringify(value).replace(/^"(.*)"$/, "$1"));
}

function fieldNote(path: Path): string {
  const { about, zeroIsDefault, values } = fieldAt(path);
  const words = values?.filter((value) => value !== "").map(code);
  return [about, words && `One of ${words.join(", ")}.`, zeroIsDefault && "*0 means the default.*"]
    .filter(Boolean)
    .join(" ");
}

function gateSection(): string {
  const ours = [...gates].filter(([, { about }]) => about !== null);
  const rows = ours.map(([name, { stage, on, locked, about }]) => [
    code(name),
    stage === "ga" ? "GA" : stage,
    `${on ? "on" : "off"}${locked ? ", locked" : ""}`,
    about!,
  ]);
  return `## Feature gates

The gates of other Kubernetes programs are accepted without effect; those of earlier releases too, with a remark in the
log. Unknown names, and locked gates set to the other value, are errors.

${table(["Gate", "Stage", "Default", "Effect"], rows)}`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}
