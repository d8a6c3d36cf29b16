// The types of flag values: how each is read from an argument, printed and named in the help.
import { parseAddress } from "../../model/address.ts";
import type { VModuleItem } from "../file/values.ts";
import { parseCsv } from "../units/csv.ts";
import { type Duration, formatDuration, parseDuration } from "../units/duration.ts";
import { splitHostPort } from "../units/host-port.ts";
import {
  formatNumber,
  parseBool,
  parseFloat32,
  parseInt32,
  parseUint31,
  shortestFloat32,
} from "../units/numbers.ts";
import { type Parsed, parsed, refused } from "../units/parsed.ts";
import { parseQuantity, type Quantity } from "../units/quantity.ts";
import { parseReportedVersion } from "../version.ts";

export type FlagValues = {
  string: string;
  bool: boolean;
  int32: number;
  float32: number;
  level: number;
  duration: Duration;
  quantity: Quantity;
  strings: readonly string[];
  switches: Readonly<Record<string, boolean>>;
  vmodule: readonly VModuleItem[];
  ip: string;
  ipPort: string;
  version: string;
};

export type FlagType = keyof FlagValues;

type FlagTypeOf<T> = {
  /** `before` is the value of an earlier use of the same flag. */
  readonly parse: (text: string, before: T | undefined) => Parsed<T>;
  readonly print: (value: T) => string;
  /** The text after the flag in the help. */
  readonly label: string;
  /** The value of a flag without one; such a flag takes its value only after `=`. */
  readonly alone?: string;
};

export const flagTypes: { readonly [T in FlagType]: FlagTypeOf<FlagValues[T]> } = {
  string: { parse: parsed, print: (value) => value, label: "string" },
  bool: { parse: parseBool, print: String, label: "", alone: "true" },
  int32: { parse: parseInt32, print: String, label: "int32" },
  float32: { parse: parseFloat32, print: (value) => formatNumber(shortestFloat32(value)), label: "float32" },
  level: { parse: parseUint31, print: String, label: "Level" },
  duration: { parse: parseDuration, print: formatDuration, label: "duration" },
  quantity: { parse: parseQuantity, print: (value) => value, label: "quantity" },
  strings: { parse: parseStrings, print: (value) => `[${value.map(csvItem).join(",")}]`, label: "strings" },
  switches: { parse: parseSwitches, print: printSwitches, label: "mapStringBool" },
  vmodule: { parse: parseVModule, print: printVModule, label: "pattern=N,..." },
  ip: { parse: parseIp, print: (value) => value, label: "ip" },
  ipPort: { parse: parseIpPort, print: (value) => value, label: "ipport" },
  version: { parse: parseVersion, print: (value) => value, label: "version[=true]", alone: "true" },
};

function parseStrings(text: string, before: readonly string[] | undefined): Parsed<readonly string[]> {
  const items = parseCsv(text);
  return items.ok ? parsed([...(before ?? []), ...items.value]) : items;
}

type Switches = Readonly<Record<string, boolean>>;

function parseSwitches(text: string, before: Switches | undefined): Parsed<Switches> {
  const switches: Record<string, boolean> = { ...before };
  for (const pair of text.split(",").filter((item) => item !== "")) {
    const equals = pair.indexOf("=");
    if (equals < 0) return refused(`malformed pair ${JSON.stringify(pair)}: write name=true or name=false`);
    const name = pair.slice(0, equals).trim();
    const value = parseBool(pair.slice(equals + 1).trim());
    if (!value.ok) return refused(`invalid value of ${name}: ${value.reason}`);
    Object.defineProperty(switches, name, {
      value: value.value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return parsed(switches);
}

function printSwitches(switches: Switches): string {
  return Object.keys(switches)
    .sort()
    .map((name) => `${name}=${switches[name]}`)
    .join(",");
}

function parseVModule(
  text: string,
  before: readonly VModuleItem[] | undefined,
): Parsed<readonly VModuleItem[]> {
  const items = [...(before ?? [])];
  for (const item of text.split(",").filter((part) => part !== "")) {
    const [filePattern, level, ...more] = item.split("=");
    if (!filePattern || !level || more.length > 0) {
      return refused(`${JSON.stringify(item)} does not have the pattern=N format`);
    }
    const verbosity = parseUint31(level);
    if (!verbosity.ok) return refused(`verbosity in ${JSON.stringify(item)}: ${verbosity.reason}`);
    items.push({ filePattern, verbosity: verbosity.value });
  }
  return parsed(items);
}

function printVModule(items: readonly VModuleItem[]): string {
  return items.map(({ filePattern, verbosity }) => `${filePattern}=${verbosity}`).join(",");
}

/** Empty text leaves the default, as in kube-proxy. */
function parseIp(text: string): Parsed<string> {
  if (text === "" || parseAddress(text) !== null) return parsed(text);
  return refused(`${JSON.stringify(text)} is not a valid IP address`);
}

function parseIpPort(text: string): Parsed<string> {
  if (text === "" || parseAddress(text) !== null) return parsed(text);
  const parts = splitHostPort(text);
  if (parts === null) return refused(`${JSON.stringify(text)} is not of the form ip, ip:port or [ipv6]:port`);
  if (parseAddress(parts.host) === null)
    return refused(`${JSON.stringify(parts.host)} is not a valid IP address`);
  const port = parseUint31(parts.port);
  return port.ok && port.value <= 65_535
    ? parsed(text)
    : refused(`${JSON.stringify(parts.port)} is not a valid port`);
}

/** `true`, `false`, `raw`, or a version to report. */
function parseVersion(text: string): Parsed<string> {
  if (text === "raw") return parsed(text);
  if (text.startsWith("v")) return parseReportedVersion(text);
  const flag = parseBool(text);
  return flag.ok
    ? parsed(String(flag.value))
    : refused(`${JSON.stringify(text)}: write true, false, raw or v1.37.1-…`);
}

function csvItem(text: string): string {
  return /[",\n\r]|^\s/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
