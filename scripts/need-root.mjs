// Ends `npm start` before anything is installed or built when it is not root, and prints what works without root.
import { accessSync, constants, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

if (process.getuid?.() !== 0) {
  console.error("start: the playground needs root, because it makes network namespaces; run: sudo npm start");
  console.error(`start: without root: ${instead()}`);
  process.exit(1);
}

function instead() {
  const render = "bin/turnout render --source=files:examples/shop --node=node-a";
  if (existsSync(join(root, "dist", "turnout.cjs"))) return render;
  return isWritable()
    ? `npm run build && ${render}`
    : `copy ${root} to a folder of your own, npm run build, ${render}`;
}

function isWritable() {
  try {
    accessSync(root, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
