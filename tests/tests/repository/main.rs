//! What is in the repository besides code agrees with the code: CRDs, install files, documents and their links.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail by panicking, as tests do

mod cases_doc;
mod crds_like_go;
mod crds_round_trip;
mod docs_links;
mod install_argocd;
mod install_files;
mod sources;
mod states_doc;
