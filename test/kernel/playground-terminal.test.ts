// The playground on a real terminal: it draws, reads input, adapts to the size, and restores the terminal.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { reasonToSkip } from "./netns.ts";

const root = join(import.meta.dirname, "..", "..");
const program = join(root, "dist", "playground.cjs");
const reason = !existsSync(program)
  ? "not built; build with: npm run build"
  : existsSync("/usr/bin/script")
    ? reasonToSkip()
    : "script is not installed";

const scratch = mkdtempSync(join(tmpdir(), "turnout-terminal-"));
afterAll(() => rmSync(scratch, { recursive: true }));

describe("the playground", () => {
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));

  it("runs on a terminal of 80×24 without colour", async () => {
    const terminal = open("stty cols 80 rows 24; export NO_COLOR=1;", "--port=0");
    await terminal.shows("Enter sends samples");
    expect(terminal.screen()).toContain("SERVICE             CLUSTER-IP  EXTERNAL-IP   PORT");
    expect(terminal.screen()).not.toContain("\u001b[1m");
    for (const line of terminal.screen().split("\n")) expect(line.length).toBeLessThanOrEqual(80);

    // Input is queued while a command runs.
    terminal.type("scale cart 2\r");
    terminal.type("kill web-1\rsend web-2 svc/shop/cart:80\r");
    await terminal.shows("cart now has 2 pods");
    await terminal.shows("web-1 is gone");
    await terminal.shows("answered by cart-");
    terminal.type("explain cart-1 svc/shop/w\t");
    await terminal.shows("> explain cart-1 svc/shop/web:80 ");
    // Text is inserted at the cursor.
    terminal.type("\u0015snd web-2 svc/shop/cart:80\u001b[H\u001b[Ce\r");
    await terminal.shows("> send web-2 svc/shop/cart:80");
    terminal.type("\u0015drain \t\t");
    await terminal.shows("  node-a, node-b\n");
    await terminal.shows("> drain node-");
    terminal.type("\u0015help\r");
    await terminal.shows("lines above: PgUp");
    terminal.type("\u001b[5~\u001b[5~");
    await terminal.shows("below: PgDn");
    terminal.type("\u0003");
    expect(await terminal.ended).toBe(0);
    // The main screen and the cursor are restored.
    const goodbye = "removing everything…\\s+Everything is removed.\\s+$";
    expect(terminal.all()).toMatch(new RegExp(`${esc}\\[\\?1049l${esc}\\[\\?25h${goodbye}`));
  });

  it("stops when it is interrupted while it creates the network", async () => {
    const { path, runs } = slowIp();
    const terminal = open(`export PATH=${path}:$PATH;`, "--port=0");
    await until(() => existsSync(runs));
    expect(terminal.all()).toContain("starting");
    terminal.type("\u0003");
    expect(await terminal.ended).toBe(0);
    expect(terminal.all()).not.toContain("SERVICE");
  });

  it("has colours on a terminal of 200×50", async () => {
    const terminal = open("stty cols 200 rows 50;", "--port=0");
    await terminal.shows("Enter sends samples");
    expect(terminal.screen()).toContain("\u001b[32mcart-1@a\u001b[0m");
    // user/6: the command is printed before the reaction of the proxy, for both families.
    terminal.type("flush node-a\r");
    const repairs = "rules changed by another program, restored";
    await terminal.shows(`node-a: IPv4 ${repairs}`);
    await terminal.shows(`node-a: IPv6 ${repairs}`);
    expect(terminal.screen()).toMatch(
      /> flush node-a\n +flushed all rules of node-a[^\n]*\nnode-a: IPv[46] rules[^\n]*\nnode-a: IPv[46] rules/,
    );
    terminal.type("quit\r");
    expect(await terminal.ended).toBe(0);
  });

  it.each([
    [`export PATH=${shellAlone()};`, [], "cannot run ip: it is not installed; on Debian: apt-get install"],
    [
      "",
      [`--manifests=${manifest("kind: ConfigMap\nmetadata: { name: a }")}`],
      "the playground API has no ConfigMap",
    ],
    ["", [`--manifests=${manifest("a: [b")}`], "turnout playground: "],
    [
      "",
      [`--manifests=${manifest("kind: Service\nmetadata: { name: a }\nspec: { selektor: {} }")}`],
      'did you mean "spec.selector"?',
    ],
  ])("reports in one line why it cannot start: %s %j", async (settings, args, answer) => {
    const terminal = open(settings, "--port=0", ...args);
    expect(await terminal.ended).toBe(1);
    expect(terminal.all()).toContain(answer);
    expect(terminal.all()).not.toMatch(/^ +at /m);
  });
});

const esc = "\u001b";

/** A folder of programs without `ip`. */
function shellAlone(): string {
  symlinkSync("/bin/sh", join(scratch, "sh"));
  return scratch;
}

/** A folder with a slow `ip`, and a file that exists once it runs. */
function slowIp(): { readonly path: string; readonly runs: string } {
  const path = mkdtempSync(join(scratch, "slow-"));
  const runs = join(path, "runs");
  const script = `#!/bin/sh\n[ -e ${runs} ] || { touch ${runs}; sleep 1; }\nPATH=\${PATH#*:}; exec ip "$@"\n`;
  writeFileSync(join(path, "ip"), script, { mode: 0o755 });
  return { path, runs };
}

async function until(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo() && tries < 900; tries++) await sleep(100);
}

function manifest(text: string): string {
  const path = join(scratch, `${text.length}.yaml`);
  writeFileSync(path, text);
  return path;
}

/** The program on a terminal of its own, replacing the shell, so that Ctrl-C reaches only the program. */
function open(settings: string, ...args: string[]) {
  const command = `${settings} exec ${process.execPath} ${program} playground ${args.join(" ")}`;
  const child: ChildProcessWithoutNullStreams = spawn("script", ["-qefc", command, "/dev/null"], {
    env: { ...process.env, NO_COLOR: "", SHELL: "/bin/sh" },
  });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const home = `${esc}[H`;
  const screen = () => text.slice(text.lastIndexOf(home)).replaceAll(`${esc}[K`, "").replaceAll("\r", "");
  return {
    all: () => text,
    /** What was drawn last. */
    screen: () =>
      screen()
        .replace(home, "")
        .replace(new RegExp(`${esc}\\[\\d+;\\d+H.*$`, "s"), ""),
    type: (keys: string) => child.stdin.write(keys),
    shows: async (wanted: string) => {
      await until(() => screen().includes(wanted));
      expect(screen()).toContain(wanted);
    },
    ended: new Promise<number | null>((resolve) => child.once("close", resolve)),
  };
}
