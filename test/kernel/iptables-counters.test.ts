// A kernel that has nfacct counters but not the match that names them: rules are written without, and it is reported.
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readScenario } from "../scenarios.ts";
import { daemonAmongPods } from "./among-pods.ts";
import { type Daemon, sampleOf } from "./site.ts";

describe("a kernel without xt_nfacct", () => {
  const node = daemonAmongPods(readScenario("node-port").objects);
  const restores = ["iptables-restore", "ip6tables-restore"];
  const failures = async (daemon: Daemon) =>
    sampleOf(
      await daemon.metrics(),
      'kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"}',
    );

  /** Restores that refuse the match as the tools do where the module is missing. */
  function withoutMatch(answer: string): string {
    const path = node.site.pathWithout(/^ip6?tables-restore$/);
    for (const program of restores) {
      const real = node.site.netns.run("sh", "-c", `command -v ${program}`).trim();
      const [input, restore] = [join(node.site.folder, `${program}-input`), join(path, program)];
      const script = [
        "#!/bin/sh",
        `[ "$1" = --version ] && exec ${real} --version`,
        `/bin/cat > ${input}`,
        `line=$(/usr/bin/awk '/-m nfacct/ { print NR; exit }' ${input})`,
        `[ -z "$line" ] && exec ${real} "$@" < ${input}`,
        answer.replaceAll("INPUT", input),
      ];
      writeFileSync(restore, `${script.join("\n")}\n`);
      chmodSync(restore, 0o755);
    }
    return path;
  }

  it.each([
    [
      "names the match",
      'echo "Warning: Extension nfacct revision 0 not supported, missing kernel module?" >&2; echo "line $line: RULE_APPEND failed (No such file or directory)" >&2; exit 4',
    ],
    ["names the line", 'echo "line $line: RULE_APPEND failed (No such file or directory)" >&2; exit 4'],
    [
      "names the end of the table",
      `line=$(/usr/bin/awk -v from=$line 'NR > from && /^COMMIT/ { print NR; exit }' INPUT); echo "iptables-restore: line $line failed" >&2; exit 1`,
    ],
  ])(
    "upstream/2: Services are served, and the log and metrics report it, when the tool %s",
    async (_, answer) => {
      const daemon = await node.started({ mode: "iptables" }, { env: { PATH: withoutMatch(answer) } });
      expect(node.saved()).toContain("172.30.0.25");
      expect(node.saved()).not.toContain("nfacct");
      expect(await daemon.health()).toMatchObject({ status: 200 });
      expect(daemon.log()).toMatch(
        /^E.*packets are not counted: the kernel lacks the nfacct match.*object="iptables"/m,
      );
      expect(sampleOf(await daemon.metrics(), 'turnout_problems{kind="unsupported"}')).toBe(1);
      expect(sampleOf(await daemon.metrics(), 'turnout_refused_objects{ip_family="IPv4"}')).toBe(0);
      const before = await failures(daemon);
      expect(before).toBeGreaterThan(0);
      node.site.api.remove("Service", "node-port", "web");
      await expect.poll(() => node.saved()).not.toContain("node-port/web");
      expect(await failures(daemon)).toBe(before);
    },
  );
});
