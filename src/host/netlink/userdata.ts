// What `nft` keeps beside kernel objects so that it can list them: comments, byte orders and `typeof` declarations.
import { type Bytes, hostU32Bytes, u8Bytes } from "./bytes.ts";

/** The kernel keeps no more than this for one object. */
const limit = 256;

const setTag = {
  keyOrder: 0,
  dataOrder: 1,
  autoMerge: 2,
  keyTypeof: 3,
  dataTypeof: 4,
  dataInterval: 6,
  comment: 7,
} as const;

const orders = { none: 0, host: 1, big: 2 } as const;

export type ByteOrder = keyof typeof orders;

export type SetNotes = {
  readonly keyOrder: ByteOrder;
  readonly keyTypeof?: Bytes;
  /** Maps only. */
  readonly data?: { readonly order: ByteOrder; readonly typeof?: Bytes };
  readonly autoMerge?: boolean;
  readonly comment?: string;
};

export function setUserdata({ keyOrder, keyTypeof, data, autoMerge, comment }: SetNotes): Bytes {
  const notes = [
    note(setTag.keyOrder, hostU32Bytes(orders[keyOrder])),
    data === undefined ? "" : note(setTag.dataOrder, hostU32Bytes(orders[data.order])),
    autoMerge ? note(setTag.autoMerge, hostU32Bytes(1)) : "",
    keyTypeof === undefined ? "" : note(setTag.keyTypeof, keyTypeof),
    data?.typeof === undefined ? "" : note(setTag.dataTypeof, data.typeof),
    data === undefined ? "" : note(setTag.dataInterval, hostU32Bytes(0)),
    comment === undefined ? "" : note(setTag.comment, zeroEnded(comment)),
  ].join("");
  if (notes.length > limit)
    throw new RangeError(`the notes of a set take ${notes.length} bytes, more than ${limit}`);
  return notes;
}

/** The comment of a table, chain, rule, element or counter. */
export function commentUserdata(comment: string): Bytes {
  return note(0, zeroEnded(comment));
}

/** The comment in the userdata of a table, chain, rule, element or counter; null when there is none. */
export function commentOf(userdata: Bytes | undefined): string | null {
  return noteText(userdata, 0);
}

export function setCommentOf(userdata: Bytes | undefined): string | null {
  return noteText(userdata, setTag.comment);
}

/** One tagged value; may contain others. */
export function note(tag: number, value: Bytes): Bytes {
  if (value.length > 255) throw new RangeError(`a note of ${value.length} bytes does not fit`);
  return u8Bytes(tag) + u8Bytes(value.length) + value;
}

function noteText(userdata: Bytes | undefined, wanted: number): string | null {
  const notes = userdata ?? "";
  for (let at = 0; at + 2 <= notes.length; at += 2 + notes.charCodeAt(at + 1)) {
    if (notes.charCodeAt(at) !== wanted) continue;
    const value = notes.slice(at + 2, at + 2 + notes.charCodeAt(at + 1));
    return Buffer.from(value.replace(/\0.*$/s, ""), "latin1").toString("utf8");
  }
  return null;
}

function zeroEnded(text: string): Bytes {
  return `${Buffer.from(text, "utf8").toString("latin1")}\0`;
}
