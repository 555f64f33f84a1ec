//! Rules for limits of an account or a namespace.

use super::Rule;
use crate::failure::class::Class::Quota;

pub(super) const RULES: &[Rule] = &[
    Rule::new(
        Quota,
        "VpcQuotaExceeded",
        "Delete unused VPCs in the region or raise the quota \"VPCs per Region\"; it goes on by itself afterwards.",
    )
    .codes(&["VpcLimitExceeded"])
    .texts(&["maximum number of vpcs"]),
    Rule::new(
        Quota,
        "AddressQuotaExceeded",
        "Release unused Elastic IP addresses or raise the quota \"EC2-VPC Elastic IPs\"; it goes on by itself afterwards.",
    )
    .codes(&["AddressLimitExceeded", "MaxAddressLimitExceeded"])
    .texts(&["maximum number of addresses", "elastic ip .. limit", "elastic ips .. limit"]),
    Rule::new(
        Quota,
        "InstanceQuotaExceeded",
        "Stop unused instances, choose smaller ones or raise the vCPU, Spot or fleet quota of EC2; it goes on by itself afterwards.",
    )
    .codes(&[
        "InstanceLimitExceeded",
        "VcpuLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "MaxSpotFleetRequestCountExceeded",
        "SpotInstanceCountLimitExceeded",
        "HostLimitExceeded",
        "ReservationLimitExceeded",
        "ReservedInstancesLimitExceeded",
        "FleetLimitExceeded",
        "MaxConfigLimitExceededException",
    ])
    .texts(&[
        "current vcpu limit",
        "vcpu limit of",
        "vcpu capacity than your current",
        "requested more vcpu",
        "requested more instances",
        "quota for maximum fleet requests",
        "max spot instance count",
        "spot instance limit",
        "on-demand instance limit",
    ]),
    Rule::new(
        Quota,
        "NetworkQuotaExceeded",
        "Remove unused network objects (the message names them) or raise their VPC quota; it goes on by itself afterwards.",
    )
    .codes(&[
        "ActiveVpcPeeringConnectionPerVpcLimitExceeded",
        "AttachmentLimitExceeded",
        "CustomerGatewayLimitExceeded",
        "InternetGatewayLimitExceeded",
        "NatGatewayLimitExceeded",
        "NetworkAclEntryLimitExceeded",
        "NetworkAclLimitExceeded",
        "NetworkInterfaceLimitExceeded",
        "OutstandingVpcPeeringConnectionLimitExceeded",
        "PrivateIpAddressLimitExceeded",
        "RouteLimitExceeded",
        "RouteTableLimitExceeded",
        "RulesPerSecurityGroupLimitExceeded",
        "SecurityGroupLimitExceeded",
        "SecurityGroupsPerInstanceLimitExceeded",
        "SecurityGroupsPerInterfaceLimitExceeded",
        "SubnetLimitExceeded",
        "TransitGatewayAttachmentLimitExceeded",
        "TransitGatewayLimitExceeded",
        "VpcCidrBlockLimitExceeded",
        "VpcEndpointLimitExceeded",
        "VpcPeeringConnectionLimitExceeded",
        "VpnConnectionLimitExceeded",
        "VpnGatewayLimitExceeded",
    ])
    .texts(&[
        "maximum number of rules per security group",
        "maximum number of security groups",
        "maximum number of subnets",
        "maximum number of network interfaces",
        "maximum number of internet gateways",
        "nat gateways .. limit",
        "maximum number of nat gateways",
    ]),
    Rule::new(
        Quota,
        "LoadBalancerQuotaExceeded",
        "Delete unused load balancers, target groups, listeners or rules, or raise their quota; it goes on by itself afterwards.",
    )
    .codes(&[
        "TooManyLoadBalancers",
        "TooManyTargetGroups",
        "TooManyListeners",
        "TooManyRules",
        "TooManyTargets",
        "TooManyActions",
        "TooManyCertificates",
        "TooManyUniqueTargetGroupsPerLoadBalancer",
        "TooManyRegistrationsForTargetId",
        "TooManyPolicies",
    ]),
    Rule::new(
        Quota,
        "ClusterQuotaExceeded",
        "Delete unused EKS clusters or node groups, or raise their quota; it goes on by itself afterwards.",
    )
    .codes(&["ResourceLimitExceededException"])
    .texts(&[
        "cluster limit exceeded",
        "clusters limit exceeded",
        "nodegroup limit exceeded",
        "nodegroups limit exceeded",
        "maximum number of clusters",
    ]),
    Rule::new(
        Quota,
        "IamQuotaExceeded",
        "Delete unused roles, policies or profiles, or raise the IAM quota that the message names; it goes on by itself afterwards.",
    )
    .causes(&["cannot exceed quota for", "maximum policy size of"])
    .codes(&["IamLimitExceeded"]),
    Rule::new(
        Quota,
        "StorageQuotaExceeded",
        "Delete unused volumes, snapshots or buckets, or raise their quota; it goes on by itself afterwards.",
    )
    .codes(&[
        "VolumeLimitExceeded",
        "SnapshotLimitExceeded",
        "MaxIOPSLimitExceeded",
        "VolumeIOPSLimit",
        "TooManyBuckets",
        "ConcurrentSnapshotLimitExceeded",
        "SnapshotCreationPerVolumeRateExceeded",
    ])
    .texts(&["exceeded your maximum .. storage limit", "more buckets than allowed"]),
    Rule::new(
        Quota,
        "KubernetesQuotaExceeded",
        "Raise the ResourceQuota of the namespace, or ask for less.",
    )
    .causes(&["exceeded quota: ", "forbidden: exceeded quota"]),
    Rule::new(
        Quota,
        "QuotaExceeded",
        "Free something or raise the quota that the message names (AWS: Service Quotas); it goes on by itself afterwards.",
    )
    .codes(&[
        "LimitExceeded",
        "LimitExceededException",
        "LimitExceededFault",
        "QuotaExceeded",
        "QuotaExceededException",
        "ResourceLimitExceeded",
        "ServiceLimitExceededException",
        "ServiceQuotaExceededException",
        "ConstraintViolationException",
        "TooManyTagsException",
        "TooManyTagsError",
        "PolicyLengthExceeded",
        "StackLimitExceeded",
        "MaximumNumberOfResources",
    ])
    .texts(&[
        "exceed the limit", "exceed the quota", "exceed your quota", "exceed your limit", "storage limit exceeded", "quota exceeded",
        "exceeded quota",
        "exceeds quota",
        "exceeds the quota",
        "exceeded your quota",
        "exceeded the quota",
        "exceeding quota",
        "over quota",
        "quota limit",
        "service quota",
        "service quotas",
        "reached your quota",
        "quota has been reached",
        "quota has been exceeded",
        "quota was exceeded",
        "quota for this account",
        "limit has been reached",
        "limit has been exceeded",
        "limit was exceeded",
        "limit was reached",
        "limit of .. has been reached",
        "maximum number of .. has been reached",
        "maximum number of .. reached",
        "maximum number of .. exceeded",
        "maximum allowed number of",
        "reached the maximum number",
        "reached the limit",
        "reached your limit",
        "exceeded the maximum number of",
        "exceeded the limit",
        "exceeded the number of",
        "exceeds the maximum number",
        "exceeds the limit",
        "insufficient quota",
        "not enough quota",
        "request a limit increase",
        "request a quota increase",
        "account limit",
        "account-level limit",
    ]).vague(&["limit exceeded", "limits exceeded"]),
    ];
