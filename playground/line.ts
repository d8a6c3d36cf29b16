// Editing the line at the prompt: splits input into keys and applies each key. Pure.

/** The text before and after the cursor. */
export type Line = { readonly before: string; readonly after: string };

export const emptyLine: Line = { before: "", after: "" };

export function textOf({ before, after }: Line): string {
  return before + after;
}

/** With the cursor at its end. */
export function lineOf(text: string): Line {
  return { before: text, after: "" };
}

const esc = "\u001b";
/** Escape sequences as terminals send them, with or without Alt, or one character. */
const keyPattern = new RegExp(`${esc}\\[[0-9;?]*[ -/]*[@-~]|${esc}O[A-Za-z]|${esc}.?|.`, "gsu");

export function keysIn(chunk: string): string[] {
  return chunk.match(keyPattern) ?? [];
}

const last = /.\p{M}*$/su;
const first = /^.\p{M}*/su;

const edits: Readonly<Record<string, (line: Line) => Line>> = {
  backspace: ({ before, after }) => ({ before: before.replace(last, ""), after }),
  delete: ({ before, after }) => ({ before, after: after.replace(first, "") }),
  left: ({ before, after }) => {
    const [moved = ""] = last.exec(before) ?? [];
    return { before: before.slice(0, before.length - moved.length), after: moved + after };
  },
  right: ({ before, after }) => {
    const [moved = ""] = first.exec(after) ?? [];
    return { before: before + moved, after: after.slice(moved.length) };
  },
  home: ({ before, after }) => ({ before: "", after: before + after }),
  end: ({ before, after }) => ({ before: before + after, after: "" }),
  clear: () => emptyLine,
  cutEnd: ({ before }) => ({ before, after: "" }),
  cutWord: ({ before, after }) => ({ before: before.replace(/\S*\s*$/u, ""), after }),
};

const keys: Readonly<Record<string, keyof typeof edits>> = {
  "\u007f": "backspace",
  "\b": "backspace",
  [`${esc}[3~`]: "delete",
  [`${esc}[D`]: "left",
  [`${esc}OD`]: "left",
  "\u0002": "left",
  [`${esc}[C`]: "right",
  [`${esc}OC`]: "right",
  "\u0006": "right",
  [`${esc}[H`]: "home",
  [`${esc}OH`]: "home",
  [`${esc}[1~`]: "home",
  "\u0001": "home",
  [`${esc}[F`]: "end",
  [`${esc}OF`]: "end",
  [`${esc}[4~`]: "end",
  "\u0005": "end",
  "\u0015": "clear",
  "\u000b": "cutEnd",
  "\u0017": "cutWord",
};

/** The line after a key; keys without a meaning change nothing. */
export function pressed(line: Line, key: string): Line {
  const edit = Object.hasOwn(keys, key) ? edits[keys[key]!] : undefined;
  if (edit !== undefined) return edit(line);
  return key >= " " ? { ...line, before: line.before + key } : line;
}
