// Inherited names in a kubeconfig are names like any other, and nothing inherited reaches the environment of a plugin.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { realWorld } from "../world.ts";
import { resolveConnection } from "./connection.ts";
import { parseKubeconfig } from "./kubeconfig.ts";

const hostile = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
const { signal } = new AbortController();

/** Written as text, because `{ __proto__: … }` in a program is something else than in JSON. */
function kubeconfigOf(word: string, args: readonly string[]): string {
  const name = JSON.stringify(word);
  const exec = `{"apiVersion":"client.authentication.k8s.io/v1","command":${JSON.stringify(process.execPath)},
    "args":${JSON.stringify(args)},"env":[{"name":${name},"value":"own"},{"name":"PLAIN","value":"own"}]}`;
  return `{${name}:{"polluted":"yes"},"current-context":${name},
    "contexts":[{"name":${name},"context":{${name}:1,"cluster":${name},"user":${name}}}],
    "clusters":[{"name":${name},"cluster":{${name}:1,"server":"https://192.0.2.1"}}],
    "users":[{"name":${name},"user":{${name}:{},"as":${name},"as-user-extra":{${name}:["x"]},"exec":${exec}}}]}`;
}

const printEnvironment = `console.log(JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1",
  kind: "ExecCredential", status: { token: Buffer.from(JSON.stringify(Object.entries(process.env))).toString("hex") } }))`;

/** As after a successful attack elsewhere: every object inherits a key. */
async function whilePolluted<T>(work: () => Promise<T>): Promise<T> {
  const inherited = { value: "yes", enumerable: true, configurable: true, writable: true };
  Object.defineProperty(Object.prototype, "INHERITED", inherited);
  try {
    return await work();
  } finally {
    Reflect.deleteProperty(Object.prototype, "INHERITED");
  }
}

it.each(hostile)("security/1: a kubeconfig full of %s is read as it is written", async (word) => {
  const folder = mkdtempSync(join(tmpdir(), "turnout-keys-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "config");
  writeFileSync(file, kubeconfigOf(word, ["-e", printEnvironment]));
  const world = { ...realWorld(manualClock()), env: { PATH: process.env.PATH } };
  const connection = await resolveConnection({ kubeconfig: file }, world);
  const { headers } = await whilePolluted(() => connection.credentials.current(signal));
  const token = String(headers.authorization).slice("Bearer ".length);
  const environment = new Map<string, string>(JSON.parse(Buffer.from(token, "hex").toString()));
  expect([environment.get(word), environment.get("PLAIN"), environment.get("INHERITED")]).toEqual([
    "own",
    "own",
    undefined,
  ]);
  expect(headers[`Impersonate-Extra-${word}`]).toEqual(["x"]);
  expect("polluted" in {}).toBe(false);
});

it.each(hostile)("security/1: %s that is not in the kubeconfig is not found in it either", (word) => {
  const name = JSON.stringify(word);
  expect(() => parseKubeconfig(`{"current-context":${name}}`, "file")).toThrow(`there is no context ${name}`);
  expect(() => parseKubeconfig("{}", "file")).toThrow("current-context is not set");
});
