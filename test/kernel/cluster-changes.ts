// A dual-stack cluster in motion: Services come, change their endpoints in both families, and go.
import type { ApiServer } from "../../playground/api/server.ts";
import { endpoint, service, slice } from "../objects.ts";
import { twin } from "../places.ts";
import type { KubeObject } from "../reference/objects.ts";

const services = 40;

export class ClusterChanges {
  readonly #api: ApiServer;
  #marks = 0;
  changes = 0;

  constructor(api: ApiServer) {
    this.#api = api;
  }

  /** Adds, changes or removes some Service or its endpoints. */
  change(): void {
    const n = any(services);
    const exists = this.#api.list("Service").some(({ metadata }) => metadata.name === `web-${n}`);
    this.changes++;
    if (exists && any(4) === 0) {
      this.#api.remove("Service", "shop", `web-${n}`);
      return;
    }
    // Every eighth asks for the address that its neighbour has.
    const address = `172.30.0.${n % 8 === 7 ? n : n + 1}`;
    if (!exists) this.#put("Service", `web-${n}`, dualStack(address, twin(address)));
    this.#putSlices(
      `web-${n}`,
      Array.from({ length: any(5) }, () => `10.180.${any(4)}.${1 + any(200)}`),
    );
  }

  /** Gives a Service that is always there another address and another endpoint, never had before; returns all four. */
  mark(): readonly string[] {
    const [part, host] = [Math.floor(this.#marks / 250), 1 + (this.#marks++ % 250)];
    // The IPv6 forms of Service addresses contain only the last number, which another Service may have.
    const addresses = [`172.30.${1 + part}.${host}`, `fd00:172:31:${1 + part}::${host}`] as const;
    const target = `10.180.${4 + part}.${host}`;
    this.#put("Service", "mark", dualStack(...addresses));
    this.#putSlices("mark", [target]);
    return [...addresses, target, twin(target)];
  }

  #putSlices(serviceName: string, addresses: readonly string[]): void {
    this.#put("EndpointSlice", serviceName, slice(addresses.map((each) => endpoint(each))));
    const twins = addresses.map((each) => endpoint(twin(each)));
    this.#put("EndpointSlice", serviceName, slice(twins, { addressType: "IPv6" }), "-v6");
  }

  #put(kind: "Service" | "EndpointSlice", serviceName: string, fields: object, suffix = ""): void {
    const metadata = {
      namespace: "shop",
      name: `${serviceName}${suffix}`,
      labels: kind === "Service" ? {} : { "kubernetes.io/service-name": serviceName },
    };
    const apiVersion = kind === "Service" ? "v1" : "discovery.k8s.io/v1";
    this.#api.put({ apiVersion, kind, ...fields, metadata } as unknown as KubeObject);
  }
}

function dualStack(...clusterIPs: readonly [string, string]): object {
  return service({
    clusterIP: clusterIPs[0],
    clusterIPs,
    ipFamilies: ["IPv4", "IPv6"],
    ipFamilyPolicy: "RequireDualStack",
  });
}

function any(below: number): number {
  return Math.floor(Math.random() * below);
}
