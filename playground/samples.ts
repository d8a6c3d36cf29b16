// The sample requests that Enter sends: to the first Services, from existing pods or outside. Pure.
import { type ApiObject, dig, hasLabels, isMap, scalar } from "./api/objects/object.ts";
import { isTerminating } from "./cluster/graceful-deletion.ts";

const most = 6;

/** Commands for the prompt; a Service with a node port is called from outside. */
export function samplesOf(services: readonly ApiObject[], pods: readonly ApiObject[]): string[] {
  const running = pods.filter((pod) => !isTerminating(pod));
  return services
    .flatMap((service) => {
      const port = firstPort(service);
      const sample = port === undefined ? null : sampleOf(service, port, running);
      return sample === null ? [] : [sample];
    })
    .slice(0, most);
}

type Port = Readonly<Record<string, unknown>>;

function sampleOf(service: ApiObject, port: Port, pods: readonly ApiObject[]): string | null {
  const protocol = scalar(port.protocol).toLowerCase();
  if (protocol === "sctp" || dig(service, "spec.clusterIP") === "None") return null;
  if (port.nodePort !== undefined)
    return `send outside nodeport:${scalar(port.nodePort)}${protocol === "udp" ? "/udp" : ""}`;
  const { namespace, name } = service.metadata;
  return `send ${callerOf(service, pods)} svc/${namespace}/${name}:${scalar(port.port)}`;
}

/** A Pod that the Service does not select, if there is one. */
function callerOf(service: ApiObject, pods: readonly ApiObject[]): string {
  const selector = dig(service, "spec.selector");
  const belongs = ({ metadata }: ApiObject) => isMap(selector) && hasLabels(metadata.labels, selector);
  const caller = pods.find((pod) => !belongs(pod)) ?? pods[0];
  return caller?.metadata.name ?? "node-a";
}

function firstPort(service: ApiObject): Port | undefined {
  const ports = dig(service, "spec.ports");
  return Array.isArray(ports) ? ports.find(isMap) : undefined;
}
