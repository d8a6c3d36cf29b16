// Limits for values from clients: nesting depth, and no key that reaches a prototype. Not recursive.
import { badRequest } from "./failure.ts";

/** Objects of these kinds are about 15 levels deep; code that walks them recursively relies on this limit. */
export const depthLimit = 64;

/** Throws Failure 400. */
export function checkInput(value: unknown): void {
  const pending: { readonly value: unknown; readonly depth: number }[] = [{ value, depth: 0 }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value: here, depth } = next;
    if (typeof here !== "object" || here === null) continue;
    if (depth >= depthLimit) throw badRequest(`the object nests deeper than ${depthLimit} levels`);
    if (!Array.isArray(here) && Object.hasOwn(here, "__proto__"))
      throw badRequest('the key "__proto__" is refused');
    for (const inner of Object.values(here)) pending.push({ value: inner, depth: depth + 1 });
  }
}
