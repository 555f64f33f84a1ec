//! The cluster templates and the ClusterClass, which `clusterctl generate cluster` reads.
//!
//! Their parts are files beside this one (`templates/`), since they are text with variables of
//! clusterctl and no YAML yet; here they are put together, so that flavours share what is the same.

use crate::text::HEAD;

const VPC: &str = include_str!("../templates/vpc.yaml");
const EKS: &str = include_str!("../templates/eks.yaml");
const CLUSTER: &str = include_str!("../templates/cluster.yaml");
const TOPOLOGY: &str = include_str!("../templates/topology.yaml");
const CLASS: &str = include_str!("../templates/class.yaml");

/// What a flavour is for, and which variables it needs beyond those of every template.
struct Flavour {
    file: &'static str,
    about: &'static str,
    parts: Vec<String>,
}

fn cluster(vpc: &str, eks: &str) -> String {
    CLUSTER.replace("@vpc@", vpc).replace("@eks@", eks)
}

fn flavours() -> [Flavour; 5] {
    let own_eks = "${CONTROLPLANE_TEMPLATE_NAME}";
    [
        Flavour {
            file: "cluster-template.yaml",
            about: "A cluster with everything it needs: templates for AWS, VPC, control plane, nodes.",
            parts: vec![
                VPC.to_owned(),
                EKS.to_owned(),
                cluster("vpcTemplateRef:\n    name: ${CLUSTER_NAME}-vpc", "${CLUSTER_NAME}-eks"),
            ],
        },
        Flavour {
            file: "cluster-template-existing-templates.yaml",
            about: "A cluster from WorkspaceTemplates that exist: VPC_TEMPLATE_NAME, CONTROLPLANE_TEMPLATE_NAME.",
            parts: vec![cluster("vpcTemplateRef:\n    name: ${VPC_TEMPLATE_NAME}", own_eks)],
        },
        Flavour {
            file: "cluster-template-existing-vpc.yaml",
            about: "A cluster in a VPC that exists (VPC_ID), from a WorkspaceTemplate that exists (CONTROLPLANE_TEMPLATE_NAME).",
            parts: vec![cluster("existingVpcId: ${VPC_ID}", own_eks)],
        },
        Flavour {
            file: "cluster-template-topology.yaml",
            about: "A cluster of a ClusterClass, from WorkspaceTemplates that exist: VPC_TEMPLATE_NAME, CONTROLPLANE_TEMPLATE_NAME.",
            parts: vec![TOPOLOGY.to_owned()],
        },
        Flavour {
            file: "clusterclass-eks.yaml",
            about: "The ClusterClass of the flavour \"topology\". It needs Cluster API's feature gate ClusterTopology.",
            parts: vec![CLASS.to_owned()],
        },
    ]
}

/// File name and text of each template.
pub fn all() -> Vec<(&'static str, String)> {
    let text = |flavour: &Flavour| format!("{HEAD}# {}\n{}", flavour.about, flavour.parts.join("---\n"));
    flavours().iter().map(|flavour| (flavour.file, text(flavour))).collect()
}
