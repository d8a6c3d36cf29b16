// Every metric there is: kube-proxy's own, the generic ones of a Kubernetes component, and ours.
import {
  counter,
  everywhere,
  exponential,
  gauge,
  histogram,
  inModes,
  linear,
  marked,
  readCounter,
  readGauge,
} from "./define.ts";

const family = ["ip_family"] as const;
const seconds = exponential(0.001, 2, 15);
const iptables = inModes("iptables");
const nftables = inModes("nftables");
const ruleModes = inModes("iptables", "nftables");
/** Modes that count connections with --traffic. */
const countingModes = inModes("nftables", "ipvs", "userspace");
const kernelModes = inModes("iptables", "ipvs", "nftables");
const nftablesLocalhost = { modes: ["nftables"], gate: "KubeProxyNFTablesLocalhostNodePorts" } as const;

// kube-proxy merges its latency buckets into a list that starts out with one zero, hence the bound 0.
const programmingSeconds = [
  0,
  ...linear(0.25, 0.25, 2),
  ...linear(1, 1, 59),
  ...linear(60, 5, 12),
  ...linear(120, 30, 7),
];

// biome-ignore format: one line for each metric reads best.
export const kubeProxyMetrics = {
  syncDuration: histogram("kubeproxy_sync_proxy_rules_duration_seconds", family, seconds, everywhere, "Time one Sync took, whatever its outcome"),
  fullSyncDuration: histogram("kubeproxy_sync_full_proxy_rules_duration_seconds", family, seconds, ruleModes, "Time a Sync of everything took"),
  partialSyncDuration: histogram("kubeproxy_sync_partial_proxy_rules_duration_seconds", family, seconds, ruleModes, "Time a Sync of only what changed took"),
  lastSynced: gauge("kubeproxy_sync_proxy_rules_last_timestamp_seconds", family, everywhere, "Unix time of the last successful Sync"),
  lastQueued: gauge("kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", family, everywhere, "Unix time at which a Sync was last requested"),
  programmingDuration: histogram("kubeproxy_network_programming_duration_seconds", family, programmingSeconds, everywhere, "Time from a change of endpoints in the cluster until the rules of this node follow it"),
  endpointChangesPending: readGauge("kubeproxy_sync_proxy_rules_endpoint_changes_pending", [], everywhere, "EndpointSlice changes not yet synced"),
  endpointChanges: readCounter("kubeproxy_sync_proxy_rules_endpoint_changes_total", [], everywhere, "EndpointSlice events seen"),
  serviceChangesPending: readGauge("kubeproxy_sync_proxy_rules_service_changes_pending", [], everywhere, "Services with changes not yet synced"),
  serviceChanges: readCounter("kubeproxy_sync_proxy_rules_service_changes_total", [], everywhere, "Service events seen, once for each IP family"),
  healthz: counter("kubeproxy_proxy_healthz_total", ["code"], everywhere, "Answers of /healthz by HTTP status"),
  livez: counter("kubeproxy_proxy_livez_total", ["code"], everywhere, "Answers of /livez by HTTP status"),
  noLocalEndpoints: gauge("kubeproxy_sync_proxy_rules_no_local_endpoints_total", ["traffic_policy", "ip_family"], everywhere, "Service ports (ipvs: Services) with policy Local that have endpoints, but none on this node"),
  restoreFailures: counter("kubeproxy_sync_proxy_rules_iptables_restore_failures_total", family, inModes("iptables", "ipvs"), "Failed runs of iptables-restore"),
  partialRestoreFailures: counter("kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total", family, iptables, "Failed runs of iptables-restore that wrote only what changed"),
  iptablesRules: gauge("kubeproxy_sync_proxy_rules_iptables_total", ["table", "ip_family"], iptables, "iptables rules this proxy owns"),
  iptablesRulesWritten: gauge("kubeproxy_sync_proxy_rules_iptables_last", ["table", "ip_family"], iptables, "iptables rules written by the last Sync"),
  nftablesFailures: counter("kubeproxy_sync_proxy_rules_nftables_sync_failures_total", family, nftables, "nftables transactions the kernel refused"),
  nftablesCleanupFailures: readCounter("kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total", family, nftables, "nftables transactions that should have removed stale objects and were refused"),
  conntrackDuration: histogram("kubeproxy_conntrack_reconciler_sync_duration_seconds", family, seconds, kernelModes, "Time one removal of stale connections took"),
  conntrackDeleted: counter("kubeproxy_conntrack_reconciler_deleted_entries_total", family, kernelModes, "Stale connections removed from conntrack"),
  invalidDropped: readCounter("kubeproxy_iptables_ct_state_invalid_dropped_packets_total", [], iptables, "Packets dropped because conntrack found them invalid"),
  localhostAccepted: readCounter("kubeproxy_iptables_localhost_nodeports_accepted_packets_total", [], iptables, "Packets accepted for NodePorts on loopback addresses"),
  localhostListeners: gauge("kubeproxy_nftables_localhost_nodeport_listeners", family, nftablesLocalhost, "Open listeners of the proxy for NodePorts on loopback addresses"),
  localhostListenFailures: counter("kubeproxy_nftables_localhost_nodeport_listener_creation_failures_total", family, nftablesLocalhost, "Listeners for NodePorts on loopback addresses that could not be opened"),
  localhostRejected: readCounter("kubeproxy_nftables_localhost_nodeport_rejected_packets_total", ["ip_family", "protocol"], nftablesLocalhost, "Packets for NodePorts on loopback addresses that were rejected"),
};

const requestSeconds = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
const requestBytes = [64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216];

// biome-ignore format: one line for each metric reads best.
export const genericMetrics = {
  buildInfo: marked("BETA", gauge("kubernetes_build_info", ["major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform"], everywhere, "Always 1; labels show the Kubernetes version that this proxy replaces, and its build")),
  featureEnabled: marked("BETA", gauge("kubernetes_feature_enabled", ["name", "stage"], everywhere, "1 if the feature gate is on, 0 if it is off")),
  registered: marked("BETA", counter("registered_metrics_total", ["stability_level", "deprecated_version"], everywhere, "Metrics by stability and by the version that deprecated them")),
  hidden: marked("BETA", counter("hidden_metrics_total", [], everywhere, "Metrics not shown because they are deprecated")),
  requests: counter("rest_client_requests_total", ["code", "method", "host"], everywhere, "Requests to the API server by HTTP status; <error> when there was none"),
  requestDuration: histogram("rest_client_request_duration_seconds", ["verb", "host"], requestSeconds, everywhere, "Time from a request to the API server to the end of the answer; watches do not count"),
  requestSize: histogram("rest_client_request_size_bytes", ["verb", "host"], requestBytes, everywhere, "Size of requests to the API server"),
  responseSize: histogram("rest_client_response_size_bytes", ["verb", "host"], requestBytes, everywhere, "Size of answers of the API server"),
  rateLimiterDuration: histogram("rest_client_rate_limiter_duration_seconds", ["verb", "host"], requestSeconds, everywhere, "Time requests to the API server waited for our own rate limit"),
  requestRetries: counter("rest_client_request_retries_total", ["code", "verb", "host"], everywhere, "Requests to the API server that were sent again"),
  cpu: marked(null, readCounter("process_cpu_seconds_total", [], everywhere, "CPU time used, in user and system mode")),
  openFds: marked(null, readGauge("process_open_fds", [], everywhere, "Open file descriptors")),
  maxFds: marked(null, readGauge("process_max_fds", [], everywhere, "Limit of open file descriptors")),
  virtualMemory: marked(null, readGauge("process_virtual_memory_bytes", [], everywhere, "Virtual memory")),
  virtualMemoryMax: marked(null, readGauge("process_virtual_memory_max_bytes", [], everywhere, "Limit of virtual memory; -1 when there is none")),
  residentMemory: marked(null, readGauge("process_resident_memory_bytes", [], everywhere, "Resident memory")),
  startTime: marked(null, readGauge("process_start_time_seconds", [], everywhere, "Unix time at which the process started")),
  networkReceived: marked(null, readCounter("process_network_receive_bytes_total", [], everywhere, "Bytes received in the network namespace of the process")),
  networkSent: marked(null, readCounter("process_network_transmit_bytes_total", [], everywhere, "Bytes sent in the network namespace of the process")),
};

const servicePort = ["namespace", "service", "port"] as const;
const operations = exponential(1, 4, 11);
const bytes = exponential(64, 4, 11);

// biome-ignore format: one line for each metric reads best.
export const turnoutMetrics = {
  version: gauge("turnout_build_info", ["version", "node_version"], everywhere, "Always 1; labels show the versions of Turnout and of Node.js"),
  syncs: counter("turnout_syncs_total", ["ip_family", "trigger", "outcome"], everywhere, "Syncs by what caused them and how they ended (ok, failed)"),
  syncOperations: histogram("turnout_sync_operations", family, operations, everywhere, "Operations one Sync sent to the kernel"),
  syncBytes: histogram("turnout_sync_bytes", family, bytes, everywhere, "Bytes one Sync sent to the kernel"),
  servicePorts: gauge("turnout_service_ports", family, everywhere, "ServicePorts in the last Snapshot that was synced"),
  endpoints: gauge("turnout_endpoints", family, everywhere, "Endpoints in the last Snapshot that was synced"),
  refusedPorts: gauge("turnout_refused_objects", family, everywhere, "Objects the kernel refused in the last Sync"),
  readBacks: counter("turnout_read_backs_total", family, everywhere, "Times the state of the kernel was read back and compared with the Plan"),
  readBackDifferences: counter("turnout_read_back_differences_total", family, everywhere, "Differences between the kernel and the Plan found by reading back"),
  driftRepaired: counter("turnout_drift_repaired_total", family, everywhere, "Foreign changes of our part of the kernel that were undone"),
  tableOwned: gauge("turnout_table_owned", family, nftables, "1 while the kernel lets no other program change our nftables table"),
  watchAge: readGauge("turnout_watch_age_seconds", ["resource"], everywhere, "Time since the API server last sent anything about this resource"),
  problems: gauge("turnout_problems", ["kind"], everywhere, "Things wrong with the objects known now, by kind"),
  intercepts: readGauge("turnout_intercepted_addresses", ["ip_family", "kind", "of"], everywhere, "Addresses of Services (kind external-ip, load-balancer-ip) that are also this node's or the API server's (of node, api-server)"),
  healthy: readGauge("turnout_healthy", ["answers"], everywhere, "1 if healthy, as kube-proxy computes it (upstream) and as this proxy does (honest)"),
  localhostConnections: readGauge("turnout_localhost_proxy_connections", family, nftablesLocalhost, "Open connections through the proxy for NodePorts on loopback addresses"),
  localhostAcceptedConnections: counter("turnout_localhost_proxy_connections_total", ["ip_family", "outcome"], nftablesLocalhost, "Connections to NodePorts on loopback addresses by outcome (forwarded, failed)"),
  eventsDropped: counter("turnout_events_dropped_total", ["why"], everywhere, "Kubernetes Events that were given up: queue-full, rejected, retries"),
  connectionsDropped: counter("turnout_server_connections_dropped_total", ["server"], everywhere, "Connections closed to make room for newer ones"),
  serviceConnections: readCounter("turnout_service_connections_total", servicePort, countingModes, "Connections to a Service port since its rules were written, with --traffic"),
  serviceRefused: readCounter("turnout_service_refused_packets_total", [...servicePort, "reason"], inModes("nftables", "userspace"), "Packets to a Service port that were rejected or dropped (reason no-endpoint, source-range), with --traffic"),
  serviceBytes: readCounter("turnout_service_bytes_total", [...servicePort, "direction"], everywhere, "Bytes of IP packets from clients (direction in) and to them (out) since the daemon started, with --traffic"),
  servicePackets: readCounter("turnout_service_packets_total", [...servicePort, "direction"], everywhere, "Packets from clients (direction in) and to them (out) since the daemon started, with --traffic"),
  serviceActive: readGauge("turnout_service_active_connections", servicePort, everywhere, "Conntrack entries of a Service port that are not closed, with --traffic"),
  endpointConnections: readCounter("turnout_endpoint_connections_total", [...servicePort, "endpoint"], countingModes, "Connections of a Service port to an endpoint, with --traffic=endpoints"),
  hiddenPorts: readGauge("turnout_traffic_hidden_ports", [], everywhere, "Service ports with traffic that have no series, because 2000 others have"),
  hiddenConnections: readCounter("turnout_traffic_hidden_connections_total", [], countingModes, "Connections to Service ports that have no series"),
  trafficUnknown: readGauge("turnout_traffic_unknown_seconds", ["source"], everywhere, "Time for which counts were lost (source counters, flows), of the latest losses; turnout top shows from when to when"),
  heapUsed: readGauge("turnout_heap_used_bytes", [], everywhere, "Memory in use by JavaScript objects"),
};

/** Served at `/metrics/slis` only. */
// biome-ignore format: one line for each metric reads best.
export const sliMetrics = {
  healthcheck: marked("STABLE", gauge("kubernetes_healthcheck", ["name", "type"], everywhere, "1 if the check passed last time, 0 if it failed")),
  healthchecks: marked("STABLE", counter("kubernetes_healthchecks_total", ["name", "type", "status"], everywhere, "Checks made, by outcome")),
};

export const metricTable = { ...kubeProxyMetrics, ...genericMetrics, ...turnoutMetrics };
