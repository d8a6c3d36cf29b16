// The kinds that Kubernetes itself has: an object of another kind in one of its groups is probably a typo.

const kinds = new Set(
  `Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate
  ReplicationController ResourceQuota Secret Service ServiceAccount ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet CronJob Job
  HorizontalPodAutoscaler PodDisruptionBudget Ingress IngressClass IPAddress NetworkPolicy ServiceCIDR EndpointSlice ClusterRole
  ClusterRoleBinding Role RoleBinding CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass PriorityClass
  MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy
  ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration CustomResourceDefinition APIService CertificateSigningRequest
  ClusterTrustBundle PodCertificateRequest Lease LeaseCandidate FlowSchema PriorityLevelConfiguration RuntimeClass DeviceClass
  DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice StorageVersion StorageVersionMigration Workload`.split(
    /\s+/,
  ),
);

const groups = new Set(
  `apps batch autoscaling policy admissionregistration.k8s.io apiextensions.k8s.io apiregistration.k8s.io certificates.k8s.io
  coordination.k8s.io discovery.k8s.io events.k8s.io flowcontrol.apiserver.k8s.io networking.k8s.io node.k8s.io
  rbac.authorization.k8s.io resource.k8s.io scheduling.k8s.io storage.k8s.io storagemigration.k8s.io`.split(
    /\s+/,
  ),
);

/** Of the core group, of another one of Kubernetes itself, or of none: not a custom resource. */
export function isBuiltInGroup(group: string): boolean {
  return group === "" || groups.has(group);
}

export function isBuiltInKind(kind: string): boolean {
  return kinds.has(kind) || (kind.endsWith("List") && kinds.has(kind.slice(0, -"List".length)));
}
