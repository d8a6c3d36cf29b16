// The lines of a saved history: what each means, and a checksum that shows whether it is intact.
import { crc32 } from "node:zlib";
import type { View } from "../../explain/view.ts";
import type { Change } from "../../history/change.ts";
import type { Dropped, Written } from "../../history/entry.ts";
import type { Recorded, Stored } from "../../history/log.ts";
import type { Family } from "../../model/address.ts";

export const formatVersion = 1;

/**
 * In this order: one header, the changes before the checkpoint, the Views of the checkpoint, one end of it; then what was
 * appended: changes with what repeats them, and what Syncs wrote.
 */
export type SavedLine =
  | {
      readonly type: "header";
      readonly version: number;
      readonly node: string;
      readonly beginsAt: number;
      readonly dropped: Dropped | null;
    }
  | ({ readonly type: "change"; readonly recorded: Recorded; readonly redo?: Change } & Pick<
      Stored,
      "seq" | "at" | "written"
    >)
  | { readonly type: "view"; readonly view: View }
  | { readonly type: "checkpoint"; readonly seq: number; readonly views: number }
  | {
      readonly type: "written";
      readonly seq: number;
      readonly family: Family;
      readonly written: Written;
    };

/** With the checksum before it and LF after it. */
export function lineOf(line: Exclude<SavedLine, { type: "change" }>): string {
  return withChecksum(JSON.stringify(line));
}

/** The text of a change is JSON already. */
export function changeLine({ seq, at, written, text }: Stored, redo: Change | null): string {
  const more = redo === null ? "" : `,"redo":${JSON.stringify(redo)}`;
  const head = `{"type":"change","seq":${seq},"at":${at},"written":${JSON.stringify(written)}`;
  return withChecksum(`${head},"recorded":${text}${more}}`);
}

/** null: the line is not intact. */
export function readLine(line: string): SavedLine | null {
  const json = line.slice(checksumLength + 1);
  if (line.slice(0, checksumLength) !== checksum(json)) return null;
  try {
    return JSON.parse(json) as SavedLine;
  } catch {
    return null;
  }
}

const checksumLength = 8;

function withChecksum(json: string): string {
  return `${checksum(json)} ${json}\n`;
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(checksumLength, "0");
}
