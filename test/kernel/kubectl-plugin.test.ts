// `kubectl turnout` with the real kubectl on the playground: the transcripts of docs/kubectl.md, findings, short names, completion.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { runLine } from "../../playground/commands.ts";
import { findAssets } from "../assets.ts";
import { stepsOf } from "../support/steps.ts";
import { playgroundFor, reasonToSkipPlayground } from "./ground.ts";
import { expectTranscript } from "./transcript.ts";

const root = join(import.meta.dirname, "..", "..");
const assets = findAssets("kubectl");
const reason = assets.found ? reasonToSkipPlayground() : assets.reason;

describe("kubectl turnout", () => {
  const place = playgroundFor("nftables", reason);
  const home = mkdtempSync(join(tmpdir(), "turnout-plugin-"));
  beforeAll(async () => {
    if (reason !== null) return;
    mkdirSync(join(home, "bin"));
    symlinkSync(join(import.meta.dirname, "kubectl-stand-in.sh"), join(home, "bin", "kubectl"));
    writeFileSync(join(home, "pods.yaml"), pods);
  });
  // A playground that was started again after a failure has no such pods.
  beforeEach(async () => {
    const applied = await run(`kubectl apply -f ${join(home, "pods.yaml")}`);
    if (applied.code !== 0) throw new Error(applied.err);
    await run("kubectl wait --for=condition=Ready pod --all -n kube-system --timeout=60s");
    await place.playground.settled();
  });
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  it("prints the output of docs/kubectl.md", async () => {
    const page = readFileSync(join(root, "docs/kubectl.md"), "utf8");
    for (const { command, output } of stepsOf(page, "console"))
      expectTranscript(command, (await run(command)).lines, output);
  });

  it("reports drift of a node, and exits with 3 where something was found", async () => {
    place.playground.flush("node/node-a");
    await expect
      .poll(async () => (await run("kubectl turnout status")).lines[1])
      .toMatch(/ \d+ repaired, last /);
    const doctor = await run("kubectl turnout doctor");
    expect(doctor.code).toBe(3);
    expect(doctor.lines.slice(1, 3)).toEqual([
      expect.stringMatching(/^node-a +0 +1$/),
      expect.stringMatching(/^node-b +0 +0$/),
    ]);
    expect(doctor.lines.join("\n")).toMatch(/^ {2}warning {3}drift .*repaired: "nft" changed our table/m);
  });

  it("lists a node without a pod of Turnout", async () => {
    await run("kubectl delete pod turnout-b -n kube-system --wait");
    const { code, lines } = await run("kubectl turnout status");
    expect(code).toBe(3);
    expect(lines.slice(1)).toEqual([
      expect.stringMatching(/^node-a +nftables +ok /),
      expect.stringMatching(/^node-b +- +no Turnout pod +-/),
    ]);
  });

  it("finds the node of a pod, and passes on what kubectl and turnout answer", async () => {
    expect((await run("kubectl turnout explain web-2 stock -n shop")).lines[0]).toContain(
      "as node-b sees it",
    );
    expect(await run("kubectl turnout explain nobody web -n shop")).toMatchObject({
      code: 1,
      err: 'kubectl turnout: Error from server (NotFound): pods "nobody" not found\n',
    });
    expect(await run("kubectl turnout explain web-1 wbe -n shop")).toMatchObject({
      code: 1,
      err: "turnout explain: there is no Service shop/wbe that Turnout serves; did you mean svc/shop/web?\n",
    });
  });

  it("is completed by kubectl", async () => {
    const offered = async (line: string) =>
      (await run(`kubectl __complete turnout ${line} 2>/dev/null`)).lines;
    expect(await offered("d")).toEqual(["diff", "doctor", ":4"]);
    expect(await offered("explain pod/web-")).toContain("pod/web-1");
    expect(await offered("explain web-1 svc/st")).toEqual(["svc/stock", ":4"]);
    expect(await offered("status --node=")).toEqual(["--node=node-a", "--node=node-b", ":4"]);
  });

  it("the prompt of the playground accepts the same names", async () => {
    const answered = (line: string) => runLine(place.playground, line);
    expect(await answered("send web-1 cart")).toEqual([
      expect.stringMatching(/^web-1 → cart: answered by cart-1 /),
    ]);
    expect(await answered("send pod/web-1 svc/cart")).toEqual([
      expect.stringContaining("answered by cart-1"),
    ]);
    expect(await answered("send node/node-b cart.shop")).toEqual([
      expect.stringContaining("answered by cart-1"),
    ]);
    expect(await answered("send node/node-z cart")).toEqual([
      expect.stringMatching(/^Node "node-z" not found/),
    ]);
  });

  async function run(command: string): Promise<{ code: number; lines: string[]; err: string }> {
    // A busy machine may take longer than a user would wait.
    const patient = command.replace("kubectl turnout ", "kubectl turnout --timeout=120 ");
    const done = await promisify(execFile)("sh", ["-c", patient], { cwd: root, env: environment() }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      (error: { code: number; stdout: string; stderr: string }) => error,
    );
    const lines = done.stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.trimEnd());
    return { code: done.code, lines, err: done.stderr };
  }

  function environment(): NodeJS.ProcessEnv {
    const { kubeconfig } = place.playground;
    return {
      PATH: `${join(home, "bin")}:${join(root, "bin")}:${process.env.PATH}`,
      HOME: home,
      KUBECONFIG: kubeconfig,
      REAL_KUBECTL: assets.found ? assets.paths.kubectl : "",
      PLAYGROUND_STATE: dirname(kubeconfig),
      PLAYGROUND_PID: String(process.pid),
    };
  }
});

const pods = `apiVersion: v1
kind: Namespace
metadata: { name: kube-system }
${["a", "b"]
  .map(
    (node) => `---
apiVersion: v1
kind: Pod
metadata: { name: turnout-${node}, namespace: kube-system, labels: { app.kubernetes.io/name: turnout } }
spec: { nodeName: node-${node}, hostNetwork: true, containers: [{ name: turnout, image: turnout }] }
`,
  )
  .join("")}`;
