// Reads a file that is rotated: re-reads it periodically and keeps the last good content when that fails.
import { readFile } from "node:fs/promises";
import type { Clock } from "../world.ts";
import type { Material } from "./kubeconfig.ts";

/** Shorter than any practical token lifetime, long enough not to read for every request. */
const freshMs = 60_000;

export type Fresh = {
  /** Rejects only when the file could never be read. */
  read(): Promise<string>;
  /** The next read goes to the file. */
  forget(): void;
};

export function freshFile(path: string, clock: Clock): Fresh {
  let text: string | null = null;
  let readAt = Number.NEGATIVE_INFINITY;
  return {
    async read() {
      if (text !== null && clock.steady() - readAt < freshMs) return text;
      try {
        text = await readFile(path, "utf8");
      } catch (error) {
        if (text === null) throw error;
      }
      readAt = clock.steady();
      return text;
    },
    forget() {
      readAt = Number.NEGATIVE_INFINITY;
    },
  };
}

/** The same for text that may also be inline. */
export function freshMaterial(material: Material, clock: Clock): Fresh | null {
  if (material === null) return null;
  if ("file" in material) return freshFile(material.file, clock);
  return { read: async () => material.inline, forget() {} };
}
