// Real kubectl versions on the playground: the Debian package and the current release. Changes must take effect on traffic.
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { findAssets } from "../assets.ts";
import { playgroundFor, reasonToSkipPlayground } from "./ground.ts";

const root = join(import.meta.dirname, "..", "..");
const reason = reasonToSkipPlayground();

const debians = "/usr/bin/kubectl";
const assets = findAssets("kubectl");
/** Both versions only in long runs. */
const enough =
  assets.found && process.env.TURNOUT_LONG === undefined
    ? "only one version is tested; for both: TURNOUT_LONG=1 npm test"
    : null;
const kubectls: readonly [name: string, path: string, reason: string | null][] = [
  [
    "Debian's kubectl",
    debians,
    existsSync(debians) ? (enough ?? reason) : "kubernetes-client is not installed",
  ],
  ["kubectl 1.37", assets.found ? assets.paths.kubectl : "", assets.found ? reason : assets.reason],
];

describe.each(kubectls)("%s on the playground", (_, path, whyNot) => {
  const place = playgroundFor("nftables", whyNot);
  const home = mkdtempSync(join(tmpdir(), "turnout-kubectl-"));
  afterAll(() => rmSync(home, { recursive: true }));

  it("selects, sorts and prints objects", async () => {
    const lines = async (line: string) => (await kubectl(line)).trim().split("\n");
    expect(await lines("get pods -l app=stock -o name")).toEqual(["pod/stock-1", "pod/stock-2"]);
    expect(await lines("get pods -o name --field-selector spec.nodeName=node-b -l app=stock")).toEqual([
      "pod/stock-2",
    ]);
    expect(
      await lines(
        "get pods -l app=stock --no-headers --sort-by=.metadata.name -o custom-columns=A:.status.podIP",
      ),
    ).toEqual([expect.stringMatching(/^10\.0\.1\./), expect.stringMatching(/^10\.0\.2\./)]);
    expect(await kubectl("get pods --sort-by=.status.podIP")).toMatch(/^NAME [\s\S]*^stock-1 /m);
    expect(await kubectl("get endpoints web")).toMatch(/^web +10\.0\.\d\.\d+:8080,/m);
    expect(await kubectl("get service web -o yaml")).toMatch(/^ {2}externalTrafficPolicy: Cluster$/m);
    expect(await kubectl("describe pod stock-1")).toMatch(/Started.* Started on node-a at 10\.0\.1\./);
    const node = await kubectl("describe node node-a");
    expect(node).toMatch(/^PodCIDR: +10\.0\.1\.0\/24$/m);
    expect(node).not.toMatch(/-\d+%|0001/);
    expect(await kubectl("get events")).toMatch(/Normal +Started +pod\/stock-1 +Started on node-a/);
  });

  it("applies, gets, watches, edits, scales and deletes, with effect on traffic", async () => {
    await kubectl("apply -f -", hello);
    expect(await kubectl("get service hello")).toMatch(
      /^hello +NodePort +172\.30\.\S+ +<none> +80:\d+\/TCP/m,
    );
    expect(await kubectl("get deployments")).toMatch(/^hello +\d\/2/m);
    expect(await kubectl("get pods -o wide")).toMatch(
      /^hello-1 +1\/1 +Running +0 +\d+s +10\.0\.\d\.\d+ +node-/m,
    );
    expect(await kubectl("get all")).toMatch(/^deployment.apps\/hello +2\/2 +2 +2/m);
    expect(await met("svc/shop/hello:80")).toMatch(/^hello-/);

    expect(await kubectl("scale deployment/hello --replicas=0")).toContain("scaled");
    await gone("hello-1", "hello-2");
    expect(await met("svc/shop/hello:80")).toBe("rejected");

    await kubectl("scale deployment/hello --replicas=1");
    await kubectl(`patch service hello -p {"spec":{"externalTrafficPolicy":"Local"}}`);
    await kubectl("edit service hello", "", { EDITOR: "sed -i 's/targetPort: web/targetPort: 8081/'" });
    expect(
      await kubectl("get service hello -o jsonpath={.spec.ports[0].targetPort}{.spec.externalTrafficPolicy}"),
    ).toBe("8081Local");
    expect(await met("svc/shop/hello:80")).toBe("refused");

    const watching = started("get pods -w");
    let watched = "";
    watching.child.stdout?.on("data", (text) => (watched += String(text)));
    await expect.poll(() => watched).toContain("hello-1");
    await kubectl("delete pod hello-1 --wait=false --grace-period=1");
    await expect.poll(() => watched).toMatch(/^hello-1 +1\/1 +Terminating/m);
    watching.child.kill();
    await expect(watching).rejects.toThrow("Command failed");
    expect(await kubectl("delete -f -", hello)).toContain('service "hello" deleted');
    expect(await met("svc/shop/web:80")).toMatch(/^web-/);
  });

  it("user/6: applying examples/shop changes nothing", async () => {
    const before = await kubectl(
      "get services,endpointslices,nodes -o jsonpath={range.items[*]}{.spec}{.endpoints}{end}",
    );
    const applied = await kubectl(`apply -f ${join(root, "examples", "shop")}`);
    expect(applied.trim().split("\n")).toHaveLength(12);
    expect(await met("svc/shop/cart:80")).toBe("cart-1");
    expect(await met("svc/shop/broken:80")).toBe("rejected");
    expect(
      await kubectl("get services,endpointslices,nodes -o jsonpath={range.items[*]}{.spec}{.endpoints}{end}"),
    ).toBe(before);
  });

  it("describes a Service with its endpoints and named ports", async () => {
    await kubectl("apply -f -", hello);
    const text = await kubectl("describe service hello");
    expect(text).toMatch(/^Type: +NodePort$/m);
    expect(text).toMatch(/^TargetPort: +web\/TCP$/m);
    expect(text).toMatch(/^Endpoints: +10\.0\.\d\.\d+:8080,10\.0\.\d\.\d+:8080$/m);
    expect(await kubectl("get svc hello -o wide")).toMatch(/^hello +NodePort .* \d+s +app=hello$/m);
    await kubectl("delete -f -", hello);
  });

  it("creates Services and Deployments without a manifest, and exposes one", async () => {
    await kubectl("create deployment made --image=echo --replicas=2 --port=8080");
    await kubectl("create service clusterip made --tcp=80:8080");
    await kubectl("create service nodeport made-np --tcp=80:8080 --node-port=30500");
    await kubectl("expose deployment made --name=made-too --port=81 --target-port=8080");
    expect(await kubectl("rollout status deployment/made --timeout=60s")).toContain("rolled out");
    expect(await met("svc/shop/made:80")).toMatch(/^made-/);
    expect(await met("svc/shop/made-too:81")).toMatch(/^made-/);
    expect(await kubectl("get service made-np")).toMatch(/80:30500\/TCP/);

    await kubectl("rollout restart deployment/made");
    expect(await kubectl("rollout status deployment/made --timeout=60s")).toContain("rolled out");
    await gone("made-1", "made-2");
    expect(await met("svc/shop/made:80")).toMatch(/^made-[34]$/);
    expect(await kubectl("describe deployment made")).toMatch(/^Replicas: +2 desired \| 2 updated/m);
    for (const line of ["rollout history deployment/made", "rollout undo deployment/made"])
      await expect(kubectl(line)).rejects.toThrow(/could not find the requested resource/);
    await expect(kubectl("rollout pause deployment/made")).rejects.toThrow(
      /does not support pausing rollouts/,
    );
    await kubectl("delete deployment,service made made-np made-too --ignore-not-found");
  });

  it("creates and deletes a namespace with its objects", async () => {
    await expect(kubectl("create service clusterip web --tcp=80 -n mine")).rejects.toThrow(
      /"mine" not found/,
    );
    await kubectl("create namespace mine");
    await kubectl("create service clusterip web --tcp=80 -n mine");
    expect(await kubectl("get ns")).toMatch(/^mine +Active/m);
    // Pods in two namespaces may have the same name.
    await kubectl("run cart-1 --image=echo -n mine");
    await kubectl("wait --for=condition=Ready pod/cart-1 -n mine --timeout=60s");
    const address = await kubectl("get pod cart-1 -n mine -o jsonpath={.status.podIP}");
    const { result } = await place.playground.send("pod:mine/cart-1", "svc/shop/stock:9090");
    expect(result).toMatchObject({ by: { saw: address } });
    await kubectl("delete namespace mine");
    expect(await kubectl("get services -A -o name")).not.toContain("mine");
    await expect(kubectl("get service web -n mine")).rejects.toThrow(/not found/);
  });

  it("deletes all objects of a kind, and none with --dry-run", async () => {
    await kubectl("create namespace many");
    for (const name of ["a", "b", "c"]) await kubectl(`create service clusterip ${name} --tcp=80 -n many`);
    await kubectl("delete services --all --dry-run=server -n many");
    await kubectl("delete service a --dry-run=server -n many");
    expect((await kubectl("get services -n many -o name")).trim().split("\n")).toHaveLength(3);
    await kubectl("delete services --all -n many");
    expect(await kubectl("get services -n many -o name")).toBe("");
  });

  it("cordons and drains a node without failed requests", async () => {
    expect(await kubectl("cordon node-b")).toContain("node/node-b cordoned");
    expect(await kubectl("get nodes")).toMatch(/^node-b +Ready,SchedulingDisabled/m);
    const drained = kubectl("drain node-b --ignore-daemonsets --force --grace-period=10 --timeout=60s");
    await expect.poll(() => kubectl("get pods")).toMatch(/^web-2 +1\/1 +Terminating/m);
    expect(await met("svc/shop/web:80")).toMatch(/^web-/);
    expect(await drained).toContain("node/node-b drained");
    expect(await kubectl("get pods -o wide")).not.toContain("node-b");
    expect(await kubectl("uncordon node-b")).toContain("node/node-b uncordoned");
  });

  it("reports errors", async () => {
    const taken = hello.replace("port: 80,", "port: 80, nodePort: 30080,");
    await expect(kubectl("apply -f -", taken)).rejects.toThrow(/already allocated by shop\/web/);
    await kubectl("delete -f - --ignore-not-found", hello);
    for (const line of [
      "logs web-1",
      "exec web-1 -- ls",
      "port-forward pod/web-1 8080",
      "debug web-1 --image=x",
    ])
      await expect(kubectl(line)).rejects.toThrow(
        /without containers, logs or shells; .*(send|ip netns exec)/,
      );
    await expect(kubectl("create configmap x --from-literal=a=b")).rejects.toThrow(/has no configmaps/);
    await expect(kubectl("delete node node-b")).rejects.toThrow(/to remove its pods: kubectl drain node-b/);
    await expect(kubectl("delete nodes --all")).rejects.toThrow(/playground nodes cannot be deleted/);
    await expect(kubectl("delete namespace default")).rejects.toThrow(/may not be deleted/);
    await expect(kubectl("scale deployment web --replicas=1000")).rejects.toThrow(/from 0 to 100/);
    const wrong = [
      ["selector:", "selektor:", /unknown field "spec.selektor"; did you mean "spec.selector"\?/],
      ["port: 80,", "port: eighty,", /spec.ports\[0\].port: must be an integer, not "eighty"/],
      ["port: 80,", "port: 80000,", /spec.ports\[0\].port: .* from 1 to 65535/],
      ["type: NodePort", "type: Nodeport", /supported values: "ClusterIP", "NodePort"/],
    ] as const;
    const [, service = ""] = hello.split("---\n");
    for (const [right, typo, answer] of wrong)
      await expect(kubectl("apply -f -", service.replace(right, typo))).rejects.toThrow(answer);
    const unknown = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: { name: db }\n";
    await expect(kubectl("apply -f -", unknown)).rejects.toThrow(/no matches for kind "StatefulSet"/);
    await expect(kubectl("create namespace Shop")).rejects.toThrow(/for example "my-name"/);
  });

  it("explains kinds and fields, and answers access reviews", async () => {
    expect(await kubectl("explain service")).toMatch(/^ +spec\t<Object>/m);
    expect(await kubectl("explain service.spec.externalTrafficPolicy")).toMatch(/ENUM:\s+Cluster\s+Local\n/);
    expect(await kubectl("explain deployment --recursive")).toMatch(/containerPort\t<integer> -required-/);
    expect(await kubectl("api-resources -o name")).toContain("endpointslices.discovery.k8s.io");
    expect(await kubectl("auth can-i delete pods")).toBe("yes\n");
  });

  it("changes a Service by apply, replace and patch, and shows the diff", async () => {
    const [, service = ""] = hello.split("---\n");
    const other = service.replace("port: 80,", "port: 81,");
    await kubectl("apply -f -", service);
    await kubectl("apply --dry-run=server -f -", other);
    const port = () =>
      kubectl("get service hello -o jsonpath={.spec.ports[*].port}/{.spec.ports[*].targetPort}");
    expect(await port()).toBe("80/web");
    await expect(kubectl("diff -f -", other)).rejects.toMatchObject({
      stdout: expect.stringMatching(/^- {4}port: 80$[\s\S]*^\+ {4}port: 81$/m),
    });
    await kubectl("replace -f -", other);
    expect(await port()).toBe("81/web");
    await kubectl(`patch service hello -p {"spec":{"ports":[{"port":81,"targetPort":8081}]}}`);
    expect(await port()).toBe("81/8081");
    await kubectl(`patch service hello --type=merge -p {"spec":{"ports":[{"port":82}]}}`);
    expect(await port()).toBe("82/82");
    await kubectl(
      `patch service hello --type=json -p [{"op":"replace","path":"/spec/ports/0/port","value":83}]`,
    );
    expect(await port()).toBe("83/82");
    const third = service.replace("port: 80,", "port: 83,");
    await kubectl("apply -f -", third);
    expect(await port()).toBe("83/web");
    await expect(kubectl("apply --server-side -f -", third)).rejects.toThrow(
      /[Ss]erver-side apply not available on the server: .*use kubectl apply without --server-side/,
    );
    expect(await kubectl("get service hello -o yaml --show-managed-fields")).not.toContain("managedFields");
    // A change of type removes the load-balancer status.
    await kubectl(`patch service hello -p {"spec":{"type":"LoadBalancer"}}`);
    await kubectl("wait service/hello --for=jsonpath={.status.loadBalancer.ingress[0].ip} --timeout=9s");
    await kubectl(`patch service hello -p {"spec":{"type":"ClusterIP"}}`);
    const balancer = () => kubectl("get service hello -o jsonpath={.status.loadBalancer}");
    await expect.poll(balancer, { timeout: 9_000 }).toBe("{}");
    expect(await kubectl("get service hello -o jsonpath={.spec.ports[0].nodePort}")).toBe("");
    await kubectl("label service hello tier=front");
    await kubectl("annotate service hello note=1");
    expect(await kubectl("get service -l tier=front --show-labels")).toMatch(/^hello .*tier=front$/m);
    await kubectl("delete service hello");
  });

  it("respects taints and node selectors", async () => {
    await kubectl("taint node node-a busy=yes:NoSchedule");
    await kubectl("create deployment shy --image=echo --replicas=2");
    await kubectl("wait --for=condition=Available deployment/shy --timeout=60s");
    expect(await kubectl("get pods -l app=shy -o wide")).not.toContain("node-a");
    await kubectl(
      `run zoned --image=echo --overrides={"spec":{"nodeSelector":{"topology.kubernetes.io/zone":"a"}}}`,
    );
    expect(await kubectl("get pod zoned")).toMatch(/^zoned +0\/1 +Pending/m);
    expect(await kubectl("describe pod zoned")).toMatch(/FailedScheduling.*node-b does not have the label/);
    await kubectl("taint node node-a busy-");
    await kubectl("wait --for=condition=Ready pod/zoned --timeout=60s");
    await kubectl("delete deployment/shy pod/zoned --wait=false");
  });

  async function kubectl(line: string, input = "", env: NodeJS.ProcessEnv = {}): Promise<string> {
    const running = started(line, env);
    running.child.stdin?.end(input);
    return (await running).stdout;
  }

  function started(line: string, env: NodeJS.ProcessEnv = {}) {
    return promisify(execFile)(path, line.split(" "), {
      env: { ...process.env, ...env, KUBECONFIG: place.playground.kubeconfig, HOME: home },
    });
  }

  /** The pod that answers cart-1, or the kind of failure. */
  async function met(to: string): Promise<string> {
    await place.playground.settled();
    const { result } = await place.playground.send("cart-1", to);
    return result.kind === "answered" ? result.by.pod : result.kind;
  }

  /** Resolves when these pods have ended. */
  async function gone(...names: string[]): Promise<void> {
    await kubectl(`wait --for=delete ${names.map((name) => `pod/${name}`).join(" ")} --timeout=60s`);
  }
});

const hello = `apiVersion: apps/v1
kind: Deployment
metadata: { name: hello, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: hello } }
  template:
    metadata: { labels: { app: hello } }
    spec: { containers: [{ name: echo, image: echo, ports: [{ name: web, containerPort: 8080 }] }] }
---
apiVersion: v1
kind: Service
metadata: { name: hello, namespace: shop }
spec: { type: NodePort, selector: { app: hello }, ports: [{ port: 80, targetPort: web }] }
`;
