// Three ServicePorts that between them use most of what packet-filter tables can do.
import { endpoint, servicePort } from "./routed.ts";

export const local = endpoint("10.180.0.1:8443");
export const remote = endpoint("10.180.1.1:8443");
export const web = servicePort("shop/web:http", { endpoints: [local, remote] });
export const front = servicePort("shop/front", {
  clusterIP: "172.30.0.11",
  nodePort: 30443,
  loadBalancerIPs: ["198.51.100.7"],
  externalIPs: ["192.168.99.1"],
  externalPolicy: "local",
  healthCheckNodePort: 31000,
  affinity: { seconds: 600 },
  sourceRanges: ["203.0.113.0/25", "192.168.0.0/24"],
  endpoints: [local, remote],
});
export const dns = servicePort("shop/dns:dns", {
  clusterIP: "172.30.0.12",
  protocol: "udp",
  nodePort: 30053,
});
