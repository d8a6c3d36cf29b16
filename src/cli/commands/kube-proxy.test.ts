// The command kube-proxy: what it prints, writes and returns, in a world of memory.
import { describe, expect, it } from "vitest";
import { manualClock } from "../../../test/support/manual-clock.ts";
import type { DaemonOptions } from "../../daemon/daemon.ts";
import { ownFlags, variableOf } from "../own-flags.ts";
import { type CommandWorld, runCommand, runDropIn } from "./kube-proxy.ts";

const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

type Outcome = {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly written: ReadonlyMap<string, string>;
  readonly started: readonly DaemonOptions[];
};

async function run(
  argv: readonly string[],
  files: Readonly<Record<string, string>> = {},
  os = "linux",
  environment: Readonly<Record<string, string>> | null = null,
): Promise<Outcome> {
  const [stdout, stderr]: [string[], string[]] = [[], []];
  const written = new Map<string, string>();
  const started: DaemonOptions[] = [];
  const world: CommandWorld = {
    version: "0.1.0",
    platform: { os, arch: "amd64", runtime: "node v20" },
    width: 110,
    pid: 7,
    clock: manualClock(),
    stdout: (text) => void stdout.push(text),
    stderr: (text) => void stderr.push(text),
    environment: environment ?? {},
    missingRights: () => null,
    openConfigFile: async (path) => {
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error("nothing there"), { code: "ENOENT" });
      return { path, text, changed: () => new Promise(() => {}), close: async () => {} };
    },
    writeFile: async (path, text) => void written.set(path, text),
    runDaemon: async (options) => {
      started.push(options);
      return 3;
    },
  };
  const start = environment === null ? runCommand : runDropIn;
  const code = await start(argv, world, new AbortController().signal);
  return { code, stdout: stdout.join(""), stderr: stderr.join(""), written, started };
}

describe("the command", () => {
  it("prints help to stdout", async () => {
    const { code, stdout, stderr } = await run(["-h"]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^kube-proxy .*\n\nUsage:\n {2}kube-proxy \[flags\]\n\nControl:\n/s);
  });

  it("prints its version", async () => {
    expect(await run(["--version"])).toMatchObject({ code: 0, stdout: "Kubernetes v1.37.1+turnout.0.1.0\n" });
    expect((await run(["--version=raw"])).stdout).toMatch(
      /^version\.Info\{Major:"1", Minor:"37", .*Platform:"linux\/amd64"\}\n$/,
    );
    expect((await run(["--version=v1.37.1-mine"])).started[0]!.version).toBe("v1.37.1-mine");
    expect((await run(["--version=false"])).started[0]!.version).toBe("v1.37.1+turnout.0.1.0");
  });

  it("prints usage and then the error for a wrong flag", async () => {
    const { code, stdout, stderr } = await run(["--proxymode=x"]);
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(
      /^Usage:\n.*\nError: unknown flag: --proxymode \(did you mean --proxy-mode\?\)\n$/s,
    );
  });

  it("01/38 refuses positional arguments, unless they are empty", async () => {
    const refused = await run(["foo"]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      'Error: "kube-proxy" does not take any arguments, got ["foo"]\n',
    ]);
    expect(await run([""])).toMatchObject({ code: 3, started: [{ cleanup: false }] });
  });

  it("prints a notice for a deprecated flag", async () => {
    expect((await run(["--healthz-port=1"])).stderr).toBe(
      "Flag --healthz-port has been deprecated, use --healthz-bind-address instead\n",
    );
  });

  it("writes the configuration and exits", async () => {
    const { code, written, started } = await run([
      "--write-config-to=out",
      "--proxy-mode=nftables",
      "--healthz-port=0",
    ]);
    expect([code, started.length]).toEqual([0, 0]);
    expect(written.get("out")).toContain("mode: nftables\n");
    expect(written.get("out")).toContain("healthzBindAddress: 0.0.0.0:10256\n");
  });

  it("01/30 writes nothing when the configuration is wrong", async () => {
    const { code, written, stderr } = await run(["--write-config-to=out", "--config=c"], {
      c: `${header}oomScoreAdj: 5000\n`,
    });
    expect([code, written.size]).toEqual([1, 0]);
    expect(stderr).toMatch(
      /^E.* "command failed" err="failed validate: KubeProxyConfiguration\.KubeProxyLinuxConfiguration\.OOMScoreAdj: Invalid value: 5000: must be within the range \[-1000, 1000\]" at="c:3:1: oomScoreAdj"\n$/,
    );
  });

  it("names the file that cannot be read", async () => {
    const { code, stderr } = await run(["--config=/nowhere"]);
    expect(code).toBe(1);
    expect(stderr).toContain("cannot read the configuration file /nowhere: no such file or directory");
  });

  it("logs remarks on the file and continues", async () => {
    const { code, stderr } = await run(["--config=c"], { c: `${header}moed: ipvs\n` });
    expect(code).toBe(3);
    expect(stderr).toContain("c:3:1: unknown field");
  });

  it("logs every flag at verbosity 1", async () => {
    expect((await run(["-v=1", "--proxy-mode=ipvs"])).stderr).toContain('FLAG: --proxy-mode=\\"ipvs\\"');
    expect((await run(["--proxy-mode=ipvs"])).stderr).toBe("");
  });

  it("logs in the configured format", async () => {
    const { stderr } = await run(["--config=c", "--logging-format=json"], { c: `${header}moed: ipvs\n` });
    expect(JSON.parse(stderr)).toMatchObject({ msg: "Configuration accepted with a remark", v: 0 });
  });

  it("hands everything to the daemon", async () => {
    const { started } = await run(["--config=c", "--master=https://m", "--init-only", "-v=2"], {
      c: `${header}mode: ipvs\n`,
    });
    const [options] = started;
    expect(options).toMatchObject({
      master: "https://m",
      initOnly: true,
      cleanup: false,
      config: { mode: "ipvs" },
    });
    expect(options!.configFile?.path).toBe("c");
    expect(options!.flags.get("v")).toBe("2");
    expect(options!.flags.get("iptables-sync-period")).toBe("30s");
    expect(options!.gates.enabled("KubeProxyIPVS")).toBe(true);
  });

  it("refuses to run on Windows", async () => {
    expect(await run([], {}, "win32")).toMatchObject({ code: 1, started: [] });
  });
});

describe("the drop-in program and the environment", () => {
  const dropIn = (environment: Readonly<Record<string, string>>, ...argv: string[]) =>
    run(argv, {}, "linux", environment);

  it("serves the status socket at the default path, and is kube-proxy in everything else", async () => {
    const [options] = (await dropIn({})).started;
    expect(options).toMatchObject({
      statusSocket: "/run/turnout/status.sock",
      configChanges: "restart",
      healthAnswers: "honest",
      owned: false,
      config: { mode: "iptables" },
    });
    expect(options).not.toHaveProperty("source");
  });

  it("takes every own flag of turnout run from its variable", async () => {
    const [options] = (
      await dropIn({
        TURNOUT_SOURCE: "files:/srv/cluster",
        TURNOUT_MODE: "nftables",
        TURNOUT_NFTABLES_OWNERSHIP: "owned",
        TURNOUT_STATUS_SOCKET: "",
        TURNOUT_CONFIG_CHANGES: "apply",
        TURNOUT_HEALTH_ANSWERS: "upstream",
      })
    ).started;
    expect(options).toMatchObject({
      statusSocket: "",
      configChanges: "apply",
      healthAnswers: "upstream",
      owned: true,
      source: { kind: "files" },
      config: { mode: "nftables" },
    });
  });

  it("prefers the flag", async () => {
    const { started } = await dropIn({ TURNOUT_MODE: "nftables" }, "--proxy-mode=userspace");
    expect(started).toMatchObject([{ config: { mode: "userspace" } }]);
  });

  it.each([
    [{ TURNOUT_MODE: "ebpf" }, /^Error: TURNOUT_MODE must be nftables, .* or userspace, not "ebpf"\n$/],
    [
      { TURNOUT_CONFIG_CHANGES: "" },
      /^Error: TURNOUT_CONFIG_CHANGES must be restart, apply or .*, not ""\n$/,
    ],
    [{ TURNOUT_SOURCE: "nowhere" }, /^Error: TURNOUT_SOURCE: Cannot use source "nowhere": .*\n$/],
  ])("names the variable in %j", async (environment, message) => {
    const { code, stderr, started } = await dropIn(environment);
    expect([code, started]).toEqual([1, []]);
    expect(stderr).toMatch(message);
  });

  it("has kube-proxy's flags only", async () => {
    const { code, stderr } = await dropIn({}, "--status-socket=/x");
    expect(code).toBe(1);
    expect(stderr).toContain("unknown flag: --status-socket");
  });

  it("security/16: ignores variables that Kubernetes sets for Services, and keys of Object.prototype", async () => {
    Object.defineProperty(Object.prototype, "TURNOUT_MODE", { value: "ebpf", configurable: true });
    try {
      const links = { TURNOUT_PORT: "tcp://172.30.0.9:80", TURNOUT_SERVICE_HOST: "172.30.0.9" };
      expect((await dropIn(links)).started).toMatchObject([{ config: { mode: "iptables" } }]);
    } finally {
      delete (Object.prototype as { TURNOUT_MODE?: string }).TURNOUT_MODE;
    }
  });

  it("security/16: no own flag has a variable that Kubernetes would set for a Service named turnout", () => {
    for (const flag of ownFlags) expect(variableOf(flag)).not.toMatch(/^TURNOUT_(PORT|SERVICE)(_|$)/);
  });
});
