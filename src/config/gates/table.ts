// Every feature gate of Kubernetes v1.37 with its stage and default, and what the ones that concern a proxy do.

export type Stage = "alpha" | "beta" | "ga" | "deprecated";

export type Gate = {
  readonly stage: Stage;
  readonly on: boolean;
  /** Cannot be changed. */
  readonly locked: boolean;
  /** What it does here; null: it concerns other programs, and is accepted without effect. */
  readonly about: string | null;
};

const ours = {
  AllowServiceExternalIPs: gate("ga", true, false, "Off: `spec.externalIPs` of Services have no effect."),
  KubeProxyIPVS: gate("deprecated", true, false, "Off: mode `ipvs` is refused."),
  KubeProxyNFTablesLocalhostNodePorts: gate(
    "alpha",
    false,
    false,
    "nftables mode: NodePorts on loopback addresses, for TCP and UDP, when `nodePortAddresses` names them.",
  ),
  NFTablesNetlink: gate("beta", true, false, "Accepted, no effect: nftables mode always uses netlink."),
  NFTablesProxyMode: gate("ga", true, true, "nftables mode."),
  MultiCIDRServiceAllocator: gate("ga", true, true, "ServiceCIDRs are watched."),
  PreferSameTrafficDistribution: gate("ga", true, true, "Hints for single nodes are honoured."),
  ComponentFlagz: gate("beta", true, false, "`/flagz` beside the metrics."),
  ComponentStatusz: gate("beta", true, false, "`/statusz` beside the metrics."),
  NativeHistograms: gate("beta", true, false, "Accepted, no effect: histograms are always classic ones."),
  ContextualLogging: gate("beta", true, false, "Accepted, no effect."),
  LoggingAlphaOptions: gate(
    "alpha",
    false,
    false,
    "Allows split streams and info buffers in `logging.options`.",
  ),
  LoggingBetaOptions: gate("beta", true, false, "Allows `logging.format: json`."),
  WatchListClient: gate(
    "beta",
    true,
    false,
    "Accepted, no effect: the first state is always requested as a stream, and as a list where the server refuses that.",
  ),
  ClientsAllowCBOR: gate("alpha", false, false, "Accepted, no effect."),
  ClientsPreferCBOR: gate("alpha", false, false, "Accepted, no effect."),
  WinDSR: gate("ga", true, true, "Windows only."),
  WinOverlay: gate("ga", true, true, "Windows only."),
  AllAlpha: gate("alpha", false, false, "Sets every alpha gate that is not set by name."),
  AllBeta: gate("beta", false, false, "Sets every beta gate that is not set by name."),
};

export type GateName = keyof typeof ours;

// Gates of other programs. A configuration shared with them may name these.
const others: readonly (readonly [Stage, on: boolean, locked: boolean, names: string])[] = [
  [
    "alpha",
    false,
    false,
    `
    APIServerWebhookAuthenticationToken APIServingWithRoutine AtomicWriteVolumeUserFields
    CBORServingAndStorage CPUManagerPolicyAlphaOptions CRIListStreaming CSIVolumeHealth
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook CompositePodGroup
    ConsistentListFromCacheSkipTimeoutFallback ContainerStopSignals
    ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource DRADerivedAttributes
    DRADeviceCompatibilityGroups DRAListTypeAttributes DRANodeAllocatableResources
    DRAOptionalNodeOperations DRAPartitionableDevicesType DRAResourcePoolStatus DefaultPodSysctls
    EmptyDirVolumeMode EventedPLEG EvictionRequestAPI GRPCContainerProbeTLS H2CContainerProbe
    ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory InPlacePodVerticalScalingMemoryBackedVolumes
    InPlacePodVerticalScalingSchedulerPreemption InterPodAffinityHostnameFastPath
    KubeletAllocatedPodsEndpoint MutablePVNodeAffinity NodeLifecycleConditions PodGroupPreemptionPolicy
    PodLogsQuerySplitStreams QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
    SchedulerPreQueueingHints ShardedListAndWatch StatefulSetRecreateStrategy StorageVersionAPI
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
    UserNamespacesHostNetworkSupport VolumeBindMountOptions WindowsCPUAndMemoryAffinity WorkloadWithJob
    `,
  ],
  [
    "beta",
    false,
    false,
    `
    CoordinatedLeaderElection DRAWorkloadResourceClaims GenericWorkload
    LocalStorageCapacityIsolationFSQuotaMonitoring PodAndContainerStatsFromCRI PodLevelResourceManagers
    SchedulerAsyncAPICalls
    `,
  ],
  [
    "beta",
    true,
    false,
    `
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth
    AllowUnsafeMalformedObjectDeletion AtomicFIFO AuthorizePodWebsocketUpgradeCreatePermission
    CPUManagerPolicyBetaOptions CRDObservedGenerationTracking ClearingNominatedNodeNameAfterBinding
    ClientsAllowCARotation ClientsAllowTLSCacheGC ConcurrentWatchObjectDecode ConstrainedImpersonation
    ContainerCheckpoint ContainerRestartRules DRAConsumableCapacity DRADeviceBindingConditions
    DRAFractionalCapacityRange DRAPartitionableDevices DRAResourceClaimGranularStatusAuthorization
    DRASchedulerFilterTimeout DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas
    DetectCacheInconsistency EnvFiles EtcdRangeStream ExcludeAdmissionWebhookVirtualResources
    ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAGeneration
    HPAOptimizedSelectorStore HPAScaleToZero HugepageAwareEviction InOrderInformersBatchProcess
    InPlacePodLevelResourcesVerticalScaling KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    KubeletInUserNamespace KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders
    ListFromCacheSnapshot ManifestBasedAdmissionControlConfig MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MemoryQoS
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    NodeControllerLeaseCircuitBreaker NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching
    PersistentVolumeClaimUnusedSinceTime PodDeletionCost PodLevelResources
    PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass PodTopologyLabelsAdmission
    PodsAPI PortForwardWebsockets ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile
    RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyHPA StaleControllerConsistencyJob
    StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet
    StatefulSetSemanticRevisionComparison StorageCapacityScoring StorageVersionHash
    StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
    UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO
    VolumeLimitScaling WatchList WatchListCompression WebhookRoundTripLoadBalancing
    WindowsGracefulNodeShutdown
    `,
  ],
  [
    "deprecated",
    false,
    false,
    `
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    ChangeContainerStatusOnKubeletRestart KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
    `,
  ],
  [
    "deprecated",
    false,
    true,
    `
    AllowOverwriteTerminationGracePeriodSeconds DeclarativeValidationTakeover GitRepoVolumeDriver
    SeparateCacheWatchRPC
    `,
  ],
  [
    "deprecated",
    true,
    false,
    `
    KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping StorageNamespaceIndex
    `,
  ],
  [
    "deprecated",
    true,
    true,
    `
    AggregatedDiscoveryRemoveBetaType DisableCPUQuotaWithExclusiveCPUs DisableNodeKubeProxyVersion
    `,
  ],
  [
    "ga",
    true,
    false,
    `
    ClusterTrustBundle ClusterTrustBundleProjection CustomCPUCFSQuotaPeriod DRADeviceTaintRules
    DRADeviceTaints InformerResourceVersion MutatingAdmissionPolicy PodCertificateRequest SELinuxMount
    StorageVersionMigrator
    `,
  ],
  [
    "ga",
    true,
    true,
    `
    CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets
    CustomResourceFieldSelectors DRAAdminAccess DRAExtendedResource DRAPrioritizedList
    DRAResourceClaimDeviceStatus DeclarativeValidation DisableAllocatorDualWrite
    DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner
    HPAConfigurableTolerance HostnameOverride ImageMaximumGCAge ImageVolume InOrderInformers
    InPlacePodVerticalScaling InPlacePodVerticalScalingInitContainers JobManagedBy
    KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources
    KubeletPodResourcesGet KubeletTracing MatchLabelKeysInPodAffinity MutableCSINodeAllocatableCount
    NodeDeclaredFeatures NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap PLEGOnDemandRelist
    PodObservedGenerationTracking PodReadyToStartContainersCondition PodSchedulingReadiness
    ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    RelaxedEnvironmentVariableValidation RelaxedServiceNameValidation SELinuxChangePolicy
    SELinuxMountReadWriteOncePod SeparateTaintEvictionController ServiceAccountTokenJTI
    ServiceAccountTokenNodeBinding ServiceAccountTokenNodeBindingValidation
    ServiceAccountTokenPodNodeInfo SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions
    UserNamespacesSupport VolumeAttributesClass WatchCacheInitializationPostStartHook
    `,
  ],
];

export const gates: ReadonlyMap<string, Gate> = new Map([
  ...Object.entries(ours),
  ...others.flatMap(([stage, on, locked, names]) =>
    names
      .trim()
      .split(/\s+/)
      .map((name) => [name, gate(stage, on, locked, null)] as const),
  ),
]);

function gate(stage: Stage, on: boolean, locked: boolean, about: string | null): Gate {
  return { stage, on, locked, about };
}
