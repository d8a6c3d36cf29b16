// How TypeScript becomes one CommonJS file that Node runs.
import { join } from "node:path";

export const root = join(import.meta.dirname, "..");

/** Options of esbuild for every program; what is bundled, where to and under which version is added. */
export const bundled = {
  absWorkingDir: root,
  bundle: true,
  platform: "node",
  target: "node26",
  format: "cjs",
  minifySyntax: true,
  sourcemap: "linked",
  sourcesContent: false,
  external: ["koffi"],
  logLevel: "warning",
};
