// Runs `kubectl turnout` against the test cluster, as a user would, and compares its answers with the API and with the docs.
import { readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import type { ServicesView } from "../../src/page/json.ts";
import { areAsShown, stepsOf } from "../support/steps.ts";
import type { NodeCluster } from "./cluster.ts";
import type { ProxyMode } from "./kubeadm.ts";
import { nodeNames } from "./lan.ts";

const root = join(import.meta.dirname, "..", "..");

type Printed = { readonly code: number; readonly out: string };
type Run = (command: string) => Printed;

/** Returns what is wrong, and writes each command with its output to `record`. */
export function checkPlugin(
  cluster: NodeCluster,
  kubectl: string,
  mode: ProxyMode,
  record: (text: string) => void,
): string[] {
  const run: Run = (command) => {
    const printed = runPlugin(cluster, kubectl, command);
    record(`$ ${command}\n${printed.out}exit code ${printed.code}\n\n`);
    return printed;
  };
  return [
    ...checkNodes(run, mode),
    ...nodeNames.flatMap((node) => checkExplain(cluster, run, node)),
    ...checkTranscripts(run, mode),
    ...nodeNames.flatMap((node) => checkPage(cluster, kubectl, node)),
  ];
}

function runPlugin({ plane, runAtPlane }: NodeCluster, kubectl: string, command: string): Printed {
  // A busy machine may take longer than a user would wait.
  const patient = command.replace("kubectl turnout ", "kubectl turnout --timeout=60 ");
  const shell = ["sh", "-c", `(${patient}) 2>&1; echo "$?"`];
  const text = runAtPlane(
    "env",
    `PATH=${pathWith(kubectl)}`,
    `KUBECONFIG=${plane.admin}`,
    ...shell,
  ).trimEnd();
  const at = text.lastIndexOf("\n") + 1;
  return { code: Number(text.slice(at)), out: text.slice(0, at) };
}

/** With the plugin and this kubectl. */
function pathWith(kubectl: string): string {
  return [join(root, "bin"), dirname(kubectl), process.env.PATH].join(delimiter);
}

/** The page of a node, through `kubectl turnout ui`, has its Services. */
function checkPage({ plane, runAtPlane }: NodeCluster, kubectl: string, node: string): string[] {
  const program = [
    process.execPath,
    join(import.meta.dirname, "open-page.ts"),
    node,
    "services?namespace=kube-system",
  ];
  const text = runAtPlane("env", `PATH=${pathWith(kubectl)}`, `KUBECONFIG=${plane.admin}`, ...program);
  const { status, body } = JSON.parse(text) as { readonly status: number; readonly body: ServicesView };
  const dns = body.rows?.find(({ service }) => service === "kube-system/kube-dns");
  return status === 200 && dns !== undefined && dns.level === "ok"
    ? []
    : [`kubectl turnout ui --node=${node}: kube-dns is not shown as healthy:\n${text}`];
}

type Answer<T> = { readonly node: string; readonly exitCode: number; readonly answer?: T };
type Status = {
  readonly mode: string;
  readonly node: string;
  readonly health: { readonly healthy: boolean };
};

/** Every node answers, in this mode, healthy and without differences or findings. */
function checkNodes(run: Run, mode: ProxyMode): string[] {
  return (["status", "diff", "doctor"] as const).flatMap((command) => {
    const { code, out } = run(`kubectl turnout ${command} -o json`);
    const answers = code === 0 ? (JSON.parse(out) as Answer<Status>[]) : [];
    const nodes = answers.map(({ node }) => node).join();
    const wrong = answers.filter(({ answer }) => command === "status" && !isHealthy(answer, mode));
    return code === 0 && nodes === nodeNames.join() && wrong.length === 0
      ? []
      : [`kubectl turnout ${command} exits with ${code}:\n${out}`];
  });
}

function isHealthy(status: Status | undefined, mode: ProxyMode): boolean {
  return status?.mode === mode && status.health.healthy;
}

type Trace = {
  readonly node: string;
  readonly outcome: string;
  readonly candidates: readonly { readonly endpoint: string }[];
  readonly kernel: { readonly agrees: boolean } | null;
};

/** From a pod, the node and outside: the node asked, the endpoints, and the kernel's agreement. */
function checkExplain(cluster: NodeCluster, run: Run, node: string): string[] {
  const dns = endpointsOf(cluster, "kube-system", "kube-dns", 53);
  const api = endpointsOf(cluster, "default", "kubernetes", 6443);
  const pod = podOn(cluster, node);
  const questions: readonly (readonly [string, string])[] = [
    [`${pod} kube-dns:53/udp -n kube-system`, dns],
    [`pod/kube-system/${pod} svc/kubernetes -n default`, api],
    [`node/${node} svc/kube-system/kube-dns:dns-tcp`, dns],
    [`outside svc/kube-system/kube-dns:53/udp --node=${node}`, dns],
  ];
  return questions.flatMap(([question, endpoints]) => {
    const { code, out } = run(`kubectl turnout explain ${question} -o json`);
    const trace = code === 0 ? (JSON.parse(out) as Trace) : null;
    const found = (trace?.candidates ?? []).map(({ endpoint }) => endpoint).sort();
    const isRight =
      trace?.node === node &&
      trace.outcome === "forward" &&
      trace.kernel?.agrees &&
      found.join() === endpoints;
    return isRight ? [] : [`kubectl turnout explain ${question}: expected ${endpoints} on ${node}:\n${out}`];
  });
}

type Slice = {
  readonly addressType: string;
  readonly endpoints: readonly { readonly addresses: readonly string[] }[];
};

/** IPv4 endpoints as the API has them. */
function endpointsOf({ kubectl }: NodeCluster, namespace: string, service: string, port: number): string {
  const label = `kubernetes.io/service-name=${service}`;
  const { items } = JSON.parse(
    kubectl(["-n", namespace, "get", "endpointslices", "-l", label, "-o", "json"]),
  ) as { items: readonly Slice[] };
  return items
    .filter(({ addressType }) => addressType === "IPv4")
    .flatMap(({ endpoints }) => endpoints.map(({ addresses }) => `${addresses[0]}:${port}`))
    .sort()
    .join();
}

function podOn({ kubectl }: NodeCluster, node: string): string {
  const query = [`--field-selector=spec.nodeName=${node}`, "-l", "k8s-app=kube-dns", "-o", "name"];
  return kubectl(["-n", "kube-system", "get", "pods", ...query])
    .trim()
    .split("\n")[0]!
    .replace("pod/", "");
}

/** The page shows nftables mode. */
function checkTranscripts(run: Run, mode: ProxyMode): string[] {
  const page = readFileSync(join(root, "docs", "kubectl.md"), "utf8");
  return stepsOf(page, "console cluster").flatMap(({ command, output }) => {
    const { out } = run(command);
    const lines = out.trimEnd().split("\n");
    const shown = output.map((line) => line.replaceAll("nftables", mode));
    return areAsShown(lines, shown) ? [] : [`${command}: not as docs/kubectl.md shows:\n${out}`];
  });
}
