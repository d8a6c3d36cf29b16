// The initial cluster of the playground: examples/shop, with Deployments instead of EndpointSlices.
import { parseAllDocuments } from "yaml";
import { checkInput } from "../api/http/input.ts";
import { type Draft, isMap } from "../api/objects/object.ts";

/** An object as in a manifest. */
export type Manifest = Draft & { readonly kind: string };

/** Throws when the text is not YAML of Kubernetes objects. */
export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const object = document.toJS() as unknown;
    if (object === null) return [];
    if (!isMap(object) || typeof object.kind !== "string")
      throw new Error("not a Kubernetes object: it has no kind");
    checkInput(object);
    return [object as Manifest];
  });
}

const set = (name: string, replicas: number, ports = "[{ containerPort: 8080 }]") => `---
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, namespace: shop }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec: { containers: [{ name: echo, image: echo, ports: ${ports} }] }
`;

export const exampleManifests = `apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
# web: reachable in the cluster, on node port 30080, and by a load balancer for one network only.
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: LoadBalancer
  clusterIP: 172.30.0.10
  clusterIPs: [172.30.0.10, "fd30::10"]
  ipFamilyPolicy: PreferDualStack
  selector: { app: web }
  ports: [{ name: http, port: 80, targetPort: 8080, nodePort: 30080 }]
  loadBalancerIP: 198.51.100.10
  loadBalancerSourceRanges: ["203.0.113.0/25"]
---
# cart: session affinity, and externalTrafficPolicy Local, so that pods see the client address.
apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop }
spec:
  type: NodePort
  clusterIP: 172.30.0.11
  selector: { app: cart }
  externalTrafficPolicy: Local
  sessionAffinity: ClientIP
  ports: [{ port: 80, targetPort: 8080, nodePort: 30081 }]
---
# stock: traffic stays in its zone while an endpoint there is ready.
apiVersion: v1
kind: Service
metadata: { name: stock, namespace: shop }
spec:
  clusterIP: 172.30.0.12
  selector: { app: stock }
  trafficDistribution: PreferClose
  ports: [{ name: grpc, port: 9090, targetPort: 8080 }]
---
# dns: UDP.
apiVersion: v1
kind: Service
metadata: { name: dns, namespace: shop }
spec:
  clusterIP: 172.30.0.13
  selector: { app: dns }
  ports: [{ name: dns, port: 53, protocol: UDP, targetPort: 5353 }]
---
# broken: its selector matches no pod, so clients are rejected immediately.
apiVersion: v1
kind: Service
metadata: { name: broken, namespace: shop }
spec:
  clusterIP: 172.30.0.14
  selector: { app: borken }
  ports: [{ port: 80, targetPort: 8080 }]
${set("web", 3)}${set("cart", 1)}${set("stock", 2)}${set("dns", 2, "[{ containerPort: 5353, protocol: UDP }]")}`;
