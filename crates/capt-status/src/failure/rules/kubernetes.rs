//! Rules for what the API server of a cluster and Helm refuse.

use super::Rule;
use crate::failure::class::Class::Config;

pub(super) const RULES: &[Rule] = &[
    Rule::new(Config, "KubernetesHostMissing", "Give the kubernetes or helm provider block a host and credentials; while destroying, remove what is left of it from the state.")
        .causes(&[
            "invalid configuration: no configuration has been provided",
            "no configuration has been provided",
            "cluster unreachable: invalid configuration",
            "invalid configuration: no server found",
            "default cluster has no server defined",
            "cannot create rest client: no client config",
            "no client config",
            "config_path refers to an invalid path",
        ]),
    Rule::new(Config, "KubernetesExecOutdated", "Use client.authentication.k8s.io/v1beta1 or v1 in the exec block, and a current AWS CLI in the image.")
        .causes(&[
            "no kind \"execcredential\" is registered",
            "no kind \"execcredential\"",
            "client.authentication.k8s.io/v1alpha1",
            "exec plugin: invalid apiversion",
            "exec: executable .. not found",
            "executable file not found in $path",
            "executable file not found",
        ]),
    Rule::new(Config, "KubernetesKindMissing", "Install the CRD or choose an API version that the cluster serves.")
        .causes(&[
            "no matches for kind",
            "did not recognize groupversionkind",
            "crd may not be installed",
            "ensure crds are installed first",
            "resource mapping not found",
            "could not find the requested resource",
            "no resource matches",
            "failed to determine resource type id",
            "failed to determine groupversionresource",
            "cannot select exact gv",
        ]),
    Rule::new(Config, "FieldConflict", "Let one manager own the field: remove it from the object or force the change.")
        .causes(&[
            "conflict with \"",
            "apply failed with",
            "conflicts: conflicts with \"",
            "field manager conflict",
        ]),
    Rule::new(Config, "KubernetesObjectRejected", "Change the object: the API server or an admission rule refuses it and says why.")
        .causes(&[
            "denied the request",
            "denied request",
            "failed quota: ",
            "cannot be handled as a",
            "violates podsecurity",
            "field is immutable",
            "fields are immutable",
            "error validating data",
            "unknown field",
            "strict decoding error",
            "error when creating .. invalid",
        ])
        .texts(&[
            "is invalid: spec",
            "is invalid: metadata",
            "unprocessable entity",
            "updates to .. forbidden",
            "invalid: spec",
            "is invalid: []",
            "too long: must have at most",
            "too long: may not be",
            "cannot unmarshal .. into go struct field",
        ]),
    Rule::new(Config, "ChartInvalid", "Correct the chart's name, version, repository or values.")
        .causes(&[
            "function .. not defined", "not found in .. repository",
            "chart .. not found",
            "no chart version found",
            "no chart name found",
            "no cached repo found",
            "values don't meet the specifications of the schema",
            "execution error at",
            "parse error at",
            "error calling include",
            "error converting yaml to json",
            "chart.yaml file is missing",
            "chart requires kubeversion",
            "failed parsing key",
            "failed parsing --set",
            "nil pointer evaluating",
            "missing in charts",
            "chart.metadata",
            "valid chart repository .. 404",
            "repo .. not found",
            "manifest unknown",
            "failed to perform .. not found",
            "public.ecr.aws .. not found",
            "ghcr.io .. not found",
            "docker.io .. not found",
            "unable to build kubernetes objects",
            "could not locate a version matching",
            "improper constraint",
        ])
        .vague(&["is not a valid chart repository", "could not download chart", "failed to download chart"]),
];
