// The outcome of reading one piece of text: a value, or the reason why it is none.

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

export function parsed<T>(value: T): Parsed<T> {
  return { ok: true, value };
}

/** `reason` is a phrase that continues "invalid argument …: ". */
export function refused(reason: string): Parsed<never> {
  return { ok: false, reason };
}
