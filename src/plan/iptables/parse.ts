// Reads what `iptables-save` prints into the tables and chains of a host.
import type { Family } from "../../model/address.ts";
import { type HostTables, type TableName, tableNames } from "./types.ts";

/** Reads a listing. Tables this proxy has nothing in are left out. */
export function parseSave(text: string, family: Family): HostTables {
  const tables = new Map<TableName, Map<string, string[]>>();
  let current: Map<string, string[]> | null = null;
  for (const line of text.split("\n")) {
    if (line.startsWith("*")) current = open(tables, line.slice(1));
    else if (current === null) continue;
    else if (line.startsWith(":")) current.set(line.slice(1, line.indexOf(" ")), []);
    else if (line.startsWith("-A ")) {
      const end = line.indexOf(" ", 3);
      const chain = end < 0 ? line.slice(3) : line.slice(3, end);
      const rules = current.get(chain) ?? [];
      rules.push(end < 0 ? "" : line.slice(end + 1).trimEnd());
      current.set(chain, rules);
    }
  }
  return { family, tables };
}

function open(tables: Map<TableName, Map<string, string[]>>, name: string): Map<string, string[]> | null {
  const table = tableNames.find((known) => known === name);
  if (table === undefined) return null;
  const chains = new Map<string, string[]>();
  tables.set(table, chains);
  return chains;
}
