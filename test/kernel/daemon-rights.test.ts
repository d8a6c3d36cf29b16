// The rights that our manifests give: all that the daemon needs, nothing that it does not use.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ApiRequest } from "../../playground/api/http/request.ts";
import { enter } from "../reference/foothold.ts";
import { objectsIn } from "../support/helm.ts";
import { shop } from "./shop.ts";
import { eventually, nodeObject, openSite, reasonNotToRun, type Site } from "./site.ts";

const reason = reasonNotToRun();
const text = readFileSync(join(import.meta.dirname, "..", "..", "deploy", "base", "rbac.yaml"), "utf8");
type Rule = { apiGroups: string[]; resources: string[]; verbs: string[] };
const role = objectsIn(text).find(({ kind }) => kind === "ClusterRole") as unknown as { rules: Rule[] };
const granted = role.rules.flatMap(({ apiGroups, resources, verbs }) =>
  apiGroups.flatMap((group) =>
    resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}.${group}`)),
  ),
);

/** The command line that follows runs as in our DaemonSet: root, these capabilities alone, /proc/sys read-only. */
function contained(...capabilities: readonly string[]): readonly string[] {
  const kept = capabilities.map((name) => `,+${name}`).join("");
  return [
    "unshare",
    "--mount",
    "sh",
    "-c",
    'mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys && exec "$@"',
    "sh",
    "setpriv",
    "--no-new-privs",
    "--bounding-set",
    `-all${kept}`,
    "--inh-caps",
    "-all",
  ];
}

const turnout = join(import.meta.dirname, "..", "..", "bin", "turnout");

/** A root file system that is read-only but for the volume of the status socket. */
const readOnly = [
  "env",
  "--unset=TURNOUT_STATUS_SOCKET",
  "unshare",
  "--mount",
  "sh",
  "-c",
  'mkdir -p /run/turnout && mount -t tmpfs tmpfs /run/turnout && mount -o remount,ro,bind / && exec "$@"',
  "sh",
] as const;

describe("the daemon's rights", () => {
  let site: Site;
  beforeEach(({ skip }) => skip(reason !== null, reason ?? ""));
  afterEach(() => site?.close());

  it("RBAC: everything granted is used, and nothing else is requested", async () => {
    const [used, denied] = [new Set<string>(), new Set<string>()];
    const allows = ({ verb, resource, namespace }: ApiRequest) => {
      const right = `${verb} ${resource.plural}.${resource.group}`;
      const isGranted = granted.includes(right);
      (isGranted ? used : denied).add(isGranted ? right : `${right} in "${namespace}"`);
      return isGranted;
    };
    site = await openSite(undefined, { allows });
    await site.openApi();
    for (const object of [nodeObject(), ...shop(checked)]) site.api.put(object);
    // A port that stays in use is reported in an Event repeatedly: the second time changes the first Event.
    const taken = await enter(site.netns).listen("0.0.0.0", checked.healthCheckNodePort);
    for (const refuse of [false, true]) {
      site.api.faults.refuseStreamingLists = refuse;
      const daemon = site.start({ config: { mode: "iptables" } });
      await daemon.ready();
      let n = 0;
      const isReported = () => {
        for (const object of shop({ ...checked, externalIPs: [`192.168.99.${++n}`] })) site.api.put(object);
        return used.has("patch events.events.k8s.io");
      };
      await eventually(isReported, `a changed Event; denied: ${[...denied].join()}`);
      daemon.kill("SIGKILL");
      await daemon.ended();
    }
    taken.close();
    expect([...denied]).toEqual([]);
    expect([...used].sort()).toEqual([...granted].sort());
  });

  it.each([
    ["nftables", "net_admin"],
    ["iptables", "net_admin,net_raw"],
  ])(
    "capabilities: mode %s works with %s alone, on read-only settings that were made before",
    async (mode, names) => {
      site = await openSite();
      await site.openApi();
      for (const object of [nodeObject(), ...shop()]) site.api.put(object);
      const { code, log } = await site.finish({ config: { mode }, args: ["--init-only"] });
      expect({ code, log }).toMatchObject({ code: 0 });
      const daemon = site.start({ config: { mode }, by: contained(...names.split(",")) });
      await daemon.ready();
      const list = mode === "nftables" ? ["nft", "list", "ruleset"] : ["iptables-save"];
      expect(site.netns.run(list[0]!, ...list.slice(1))).toContain("172.30.0.10");
      expect(capabilitiesOf(daemon.pid)).toBe(mode === "nftables" ? 1n << 12n : (1n << 12n) | (1n << 13n));
    },
  );

  it("security/12: turnout status works with a read-only root and the volume for its socket", async () => {
    site = await openSite();
    await site.openApi();
    for (const object of [nodeObject(), ...shop()]) site.api.put(object);
    const daemon = site.start({ program: "turnout run", by: [...readOnly, ...contained("net_admin")] });
    await daemon.ready();
    const status = execFileSync("nsenter", ["-m", "-n", "-t", `${daemon.pid}`, turnout, "status"], {
      encoding: "utf8",
    });
    expect(status).toContain("nftables");
    expect(daemon.log()).not.toContain("Cannot serve the status socket");
  });

  it("behaviour/3: does not exit for a change whose kernel settings only the init container may write", async () => {
    site = await openSite();
    await site.openApi();
    for (const object of [nodeObject(), ...shop()]) site.api.put(object);
    const args = ["--config-changes=apply", `--status-socket=${join(site.folder, "status.sock")}`];
    const by = contained("net_admin", "net_raw");
    const daemon = site.start({ program: "turnout run", args, by });
    await daemon.ready();
    site.configure({ mode: "iptables" });
    const refusal = /err="cannot set \/proc\/sys\/.*route_localnet to 1: .*recreate the pod.*field="mode"/;
    await eventually(() => refusal.test(daemon.log()), "a refusal");
    expect(daemon.running()).toBe(true);
  });

  it("SIGTERM ends it also as the first process of a container", async () => {
    site = await openSite();
    await site.openApi();
    site.api.put(nodeObject());
    const daemon = site.start({ by: ["unshare", "--pid", "--fork", "--mount-proc"] });
    await daemon.ready();
    const [first] = readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/children`, "utf8").split(" ");
    process.kill(Number(first), "SIGTERM");
    expect(await daemon.ended()).toBe(143);
  });
});

const checked = {
  type: "LoadBalancer",
  externalTrafficPolicy: "Local",
  healthCheckNodePort: 31000,
  ports: [{ name: "http", protocol: "TCP", port: 80, nodePort: 30080 }],
};

function capabilitiesOf(pid: number): bigint {
  const [, hex] = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return BigInt(`0x${hex}`);
}
