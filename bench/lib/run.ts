// How a benchmark starts: only where it can run, on a stage or in a namespace that is removed afterwards, and with which programs.
import { join } from "node:path";
import { findAssets } from "../../test/assets.ts";
import { createNamespace, type Namespace, reasonToSkip } from "../../test/kernel/netns.ts";
import { createStage, type Stage } from "./stage.ts";

/** Starts it when its module has been loaded; an error ends the process with exit code 1. */
export function start(main: () => Promise<void>): void {
  setImmediate(() => {
    main().catch((error: unknown) => {
      console.error(error);
      process.exitCode = 1;
    });
  });
}

/** The same for a benchmark that needs network namespaces; without them it prints the reason. */
export function startAsRoot(main: () => Promise<void>): void {
  start(async () => {
    const reason = reasonToSkip();
    if (reason === null) await main();
    else printSkip(reason);
  });
}

export function printSkip(reason: string): void {
  console.log(`  skipped: ${reason}`);
}

export async function onStage<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const stage = createStage();
  try {
    return await work(stage);
  } finally {
    await stage.close();
  }
}

export async function inNamespace<T>(work: (netns: Namespace) => Promise<T>, name?: string): Promise<T> {
  const netns = createNamespace(name);
  try {
    return await work(netns);
  } finally {
    netns.remove();
  }
}

export const ours = process.env.TURNOUT_PROGRAM ?? join(process.cwd(), "bin", "kube-proxy");

/** Name and path: the real kube-proxy, where it has been built, and Turnout. */
export function programs(): readonly (readonly [name: string, path: string])[] {
  const assets = findAssets("kube-proxy");
  if (!assets.found) console.log(`  without kube-proxy: ${assets.reason}`);
  return [...(assets.found ? [["kube-proxy", assets.paths["kube-proxy"]] as const] : []), ["turnout", ours]];
}
