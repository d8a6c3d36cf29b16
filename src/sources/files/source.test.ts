// The files source on real files: read, watched, and robust against broken ones.
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  apiRig,
  node,
  nodeName,
  service,
  serviceCIDR,
  slice,
  viewOf,
} from "../../../test/support/api-rig.ts";
import { fastClock } from "../../../test/support/fast-clock.ts";
import { Cluster } from "../../manifests/cluster.ts";
import type { Kind } from "../../manifests/objects.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { systemClock } from "../../observe/clock.ts";
import type { Source } from "../source.ts";
import type { Clock } from "../world.ts";
import { asyncDisk, type Disk } from "./disk.ts";
import { filesSource } from "./source.ts";

let folder: string;
let life: AbortController;
let source: Source;
let snapshots: Snapshot[];
let consumed: Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnout-files-"));
  life = new AbortController();
  snapshots = [];
});

afterEach(async () => {
  life.abort();
  await consumed;
  await rm(folder, { recursive: true, force: true });
});

const json = (...items: object[]) => JSON.stringify({ kind: "List", apiVersion: "v1", items });
const put = (name: string, text: string) => writeFile(join(folder, name), text);
const replace = async (name: string, text: string) => {
  await put(`.${name}.new`, text);
  await rename(join(folder, `.${name}.new`), join(folder, name));
};

async function open(paths: readonly string[] = [folder], clock: Clock = systemClock, disk = asyncDisk) {
  source = await filesSource({ paths, nodeName, clock, disk }, life.signal);
  consumed = (async () => {
    for await (const snapshot of source.snapshots(life.signal)) snapshots.push(snapshot);
  })();
}

const latest = () => snapshots.at(-1)!;
const services = () =>
  [...new Set([...latest().ipv4.ports.values()].map(({ service: name }) => name))].sort();
const soon = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 20 });
const problems = () => latest().problems.map(({ object, message }) => `${object} ${message}`);

it("reads one or many YAML and JSON files, Lists and documents, with the same result as the API", async () => {
  const objects = [
    node(),
    service("web"),
    slice("web-1", "web", ["10.0.0.1"]),
    serviceCIDR("k", "172.30.0.0/16"),
  ];
  await put("a.json", json(objects[0]!, objects[1]!));
  await put(
    "b.yaml",
    `# two documents\n---\n${JSON.stringify(objects[2])}\n---\n---\n${JSON.stringify(objects[3])}\n`,
  );
  await put(
    "c.yml",
    JSON.stringify({
      kind: "ServiceList",
      apiVersion: "v1",
      items: [{ metadata: { name: "x" }, spec: service("x").spec }],
    }),
  );
  await put("notes.txt", "not: [a manifest");
  await put(
    "d.yaml",
    "kind: Deployment\napiVersion: apps/v1\n---\nkind: Service\napiVersion: serving.knative.dev/v1\nmetadata: {name: other}\n",
  );
  await open();
  await soon(() => expect(snapshots).toHaveLength(1));
  const cluster = new Cluster(nodeName);
  for (const object of [...objects, { ...service("x"), metadata: { name: "x", namespace: "default" } }]) {
    cluster.upsert(object.kind as Kind, object);
  }
  expect(viewOf(latest())).toEqual(viewOf(cluster.take()));
  expect(latest().problems).toEqual([]);
});

it("22/17 a dump of the live state gives the same Snapshot as the API", async () => {
  const rig = await apiRig(systemClock, {
    prepare(server) {
      for (const object of [
        node(),
        service("web"),
        slice("web-1", "web", ["10.0.0.1"]),
        serviceCIDR("k", "172.30.0.0/16"),
      ]) {
        server.put(object);
      }
      server.put(service("hidden", "172.30.0.2", { "service.kubernetes.io/service-proxy-name": "other" }));
      server.put(service("headless", "None"));
    },
  });
  await soon(() => expect(rig.seen()).toEqual(rig.truth()));
  for (const [i, path] of [
    "api/v1/services",
    "api/v1/nodes",
    "apis/discovery.k8s.io/v1/endpointslices",
    "apis/networking.k8s.io/v1/servicecidrs",
  ].entries()) {
    await put(`${i}.json`, await (await fetch(`${rig.server.url}/${path}`)).text());
  }
  const live = rig.seen();
  await rig.stop();
  await open();
  await soon(() => expect(viewOf(snapshots.at(-1))).toEqual(live));
});

it("22/17 an atomic replacement is picked up within a second, and only what changed changes", async () => {
  await put("a.yaml", json(service("a")));
  await put("b.yaml", json(service("b", "172.30.0.2")));
  // Slow enough that the delays of a busy machine do not matter.
  const clock = fastClock(0.1);
  await open([folder], clock);
  await soon(() => expect(services()).toEqual(["shop/a", "shop/b"]));
  const before = latest();
  const at = clock.steady();
  await replace("b.yaml", json(service("b", "172.30.0.3")));
  await soon(() => expect(latest().ipv4.ports.get("shop/b/tcp/web")!.clusterIP).toBe("172.30.0.3"));
  expect(clock.steady() - at).toBeLessThan(1000);
  expect([...latest().ipv4.changed]).toEqual(["shop/b/tcp/web"]);
  expect(latest().ipv4.ports.get("shop/a/tcp/web")).toBe(before.ipv4.ports.get("shop/a/tcp/web"));
});

it("22/17 a broken file keeps the old state and is reported with its line, until it is fixed", async () => {
  await put("a.yaml", json(service("a")));
  await put("b.yaml", json(service("b", "172.30.0.2")));
  await open();
  await soon(() => expect(services()).toEqual(["shop/a", "shop/b"]));
  await replace("a.yaml", "kind: Service\nmetadata:\n  name: a\n  name: b\n");
  await replace("b.yaml", json(service("c", "172.30.0.3")));
  await soon(() => expect(services()).toEqual(["shop/a", "shop/c"]));
  await soon(() =>
    expect(problems()).toEqual([
      `${folder}/a.yaml:4 cannot be read: duplicated mapping key; its last good state is kept`,
    ]),
  );
  expect(source.status().resources.Service!.lastError!.message).toContain("a.yaml:4");
  await replace("a.yaml", json(service("d", "172.30.0.4")));
  await soon(() => expect(services()).toEqual(["shop/c", "shop/d"]));
  expect(latest().problems).toEqual([]);
});

it("22/17 a file that is being written is not read before it is complete", async () => {
  await put("a.yaml", json(service("a")));
  // Slow enough that a busy machine does not extend our pauses beyond the settling time.
  await open([folder], fastClock(0.1));
  await soon(() => expect(services()).toEqual(["shop/a"]));
  const whole = ["a", "b", "c", "d", "e"].map((name) => `---\n${JSON.stringify(service(name))}\n`);
  for (let i = 1; i <= whole.length; i++) {
    await put("a.yaml", whole.slice(0, i).join(""));
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
  await soon(() => expect(services()).toHaveLength(5));
  expect(snapshots.map(({ ipv4 }) => ipv4.ports.size)).toEqual([1, 5]);
});

it("follows the symlink swap of a ConfigMap volume", async () => {
  for (const [version, address] of [
    ["..v1", "172.30.0.1"],
    ["..v2", "172.30.0.2"],
  ] as const) {
    await mkdir(join(folder, version));
    await put(`${version}/web.yaml`, json(service("web", address)));
  }
  await symlink("..v1", join(folder, "..data"));
  await symlink("..data/web.yaml", join(folder, "web.yaml"));
  await open([join(folder, "web.yaml")]);
  await soon(() => expect(services()).toEqual(["shop/web"]));
  await symlink("..v2", join(folder, "..data_tmp"));
  await rename(join(folder, "..data_tmp"), join(folder, "..data"));
  await soon(() => expect([...latest().ipv4.ports.values()][0]!.clusterIP).toBe("172.30.0.2"));
});

it("files come and go; a named path that is gone keeps its last state", async () => {
  const inner = join(folder, "inner");
  await mkdir(inner);
  await open([inner]);
  await soon(() => expect(snapshots).toHaveLength(1));
  await put("inner/a.yaml", json(service("a")));
  await put("inner/b.yaml", json(service("b")));
  await soon(() => expect(services()).toEqual(["shop/a", "shop/b"]));
  await rm(join(inner, "b.yaml"));
  await soon(() => expect(services()).toEqual(["shop/a"]));
  await rename(inner, join(folder, "away"));
  await soon(() => expect(problems()).toEqual([`${inner} is gone; its last good state is kept`]));
  expect(services()).toEqual(["shop/a"]);
  await mkdir(inner);
  await put("inner/c.yaml", json(service("c")));
  await soon(() => expect(services()).toEqual(["shop/c"]));
  expect(latest().problems).toEqual([]);
});

it("reports an object that two files define, and documents that are no objects", async () => {
  await put("a.yaml", json(service("web")));
  await put("b.yaml", `# comment\n${json(service("web", "172.30.0.9"))}\n---\n- 1\n---\nmetadata: {}\n`);
  await put("c.yaml", "kind: EndpointSlice\napiVersion: discovery.k8s.io/v1beta1\n");
  await open();
  await soon(() => expect(snapshots).toHaveLength(1));
  expect([...latest().ipv4.ports.values()][0]!.clusterIP).toBe("172.30.0.1");
  expect(problems().sort()).toEqual([
    `${folder}/b.yaml:4 is not an object and is ignored`,
    `${folder}/b.yaml:6 has no kind and is ignored`,
    `${folder}/c.yaml:1 is of version "v1beta1" of EndpointSlice, which is not read`,
    `Service shop/web is defined in ${folder}/a.yaml, item 1 and again in ${folder}/b.yaml:2; the first counts`,
  ]);
});

it("user/2: a Node that is gone from the files is a Problem, keeps its state and is not deleted", async () => {
  await put("a.yaml", json(service("a")));
  await open();
  const kinds: string[] = [];
  const followed = (async () => {
    for await (const event of source.nodeEvents(life.signal)) kinds.push(event.kind);
  })();
  await soon(() => expect(kinds).toEqual(["absent"]));
  await put("node.yaml", json(node()));
  await soon(() => expect(kinds).toEqual(["absent", "present"]));
  const before = latest().node;
  await rm(join(folder, "node.yaml"));
  await soon(() =>
    expect(problems()).toEqual([`Node ${nodeName} is in none of the files any more; its last state is kept`]),
  );
  expect(latest().node).toEqual(before);
  expect(source.status().resources.Node!.lastError!.message).toContain("in none of the files");
  await put("node.yaml", json(node()));
  await soon(() => expect(kinds).toEqual(["absent", "present", "present"]));
  await soon(() => expect(latest().problems).toEqual([]));
  life.abort();
  await followed;
});

it.each([
  ["rm and cp", (path: string) => rm(path)],
  ["mv aside and cp", (path: string) => rename(path, join(folder, "aside.bak"))],
])("user/2: %s replaces a file in one step: what it holds is never gone", async (_, takeAway) => {
  await put("a.yaml", json(service("a"), node()));
  let scans = 0;
  const disk: Disk = {
    ...asyncDisk,
    stat(path) {
      if (path === folder) scans++;
      return asyncDisk.stat(path);
    },
  };
  // Slow enough that a busy machine does not extend the pause beyond the wait.
  await open([folder], fastClock(0.1), disk);
  await soon(() => expect(services()).toEqual(["shop/a"]));
  await takeAway(join(folder, "a.yaml"));
  // Each scan reads twice; the second that starts from now on is complete when the third begins.
  const before = scans;
  await soon(() => expect(scans).toBeGreaterThan(before + 4));
  await put("a.yaml", json(service("a"), service("b", "172.30.0.2"), node()));
  await soon(() => expect(services()).toEqual(["shop/a", "shop/b"]));
  expect(snapshots.map(({ ipv4 }) => ipv4.ports.size)).toEqual([1, 2]);
  expect(snapshots.flatMap((snapshot) => snapshot.problems)).toEqual([]);
});

it("refuses a path that does not exist", async () => {
  consumed = Promise.resolve();
  await expect(open([join(folder, "nothing")])).rejects.toThrow("there is no such file or directory");
});

it("hostile files are reported with their line, and the others in the folder keep working", async () => {
  const row = (i: number) =>
    `b${i}: &b${i} [${Array(9)
      .fill(`*b${i - 1}`)
      .join()}]`;
  const prototype = '{"__proto__": {"kind": "Service"}, "constructor": {"prototype": {"kind": "Service"}}}';
  await put("a-bomb.yaml", ["b0: &b0 [x]", ...Array.from({ length: 12 }, (_, i) => row(i + 1))].join("\n"));
  await put("b-tags.yaml", "a: 1\n---\n!!js/function 'x'\n");
  await put("c-null.yaml", "a: 1\n\u0000\n");
  await put("d-deep.yaml", `\n${"[".repeat(5_000)}`);
  await put("e-deep.json", `${'{"items":['.repeat(50_000)}`);
  await put("f-prototype.json", prototype);
  await put("g-prototype.yaml", `---\n${prototype}\n`);
  await put("h-long.yaml", `kind: ConfigMap\ndata:\n  x: ${"y".repeat(3_000_000)}\n`);
  await put("i-wide.json", JSON.stringify({ kind: "ConfigMap", data: Array(200_000).fill({ a: 1 }) }));
  await put("z-good.yaml", json(service("good")));
  await open();
  await soon(() => expect(services()).toEqual(["shop/good"]));
  const bad = latest().problems.map(({ kind, object }) => `${kind} ${object.slice(folder.length + 1)}`);
  expect(bad).toEqual([
    "unreadable a-bomb.yaml:2",
    "unreadable b-tags.yaml:3",
    "unreadable c-null.yaml:2",
    "unreadable d-deep.yaml:2",
    "unreadable e-deep.json:1",
    "ignored f-prototype.json:1",
    "ignored g-prototype.yaml:2",
  ]);
  expect(({} as { readonly kind?: unknown }).kind).toBeUndefined();
});
