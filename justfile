# What people and CI run. `just` alone lists the recipes.

[private]
default:
    @just --list

# Build the real stack for tests and the demo (10 to 20 minutes once, then instant); needs Go
stack:
    @tests/stack/build.sh

# Build OpenTofu for machines without terraform (8 to 25 minutes once); needs Go
stack-tofu:
    @tests/stack/build.sh --tofu

# Run the tests against the real stack, two at a time: each starts processes of its own
test-stack: stack install-tools
    @cargo build --bins --examples
    cargo test --workspace -- --ignored --test-threads=2

# A real cluster to Ready and gone again, to look at; `--keep` leaves it running
demo *arguments: stack
    @cargo build --bins --examples
    @cargo run -q --example demo -- {{ arguments }}

# Fifty clusters' lives beside the real API server while it and two operators are killed 220 times; half an hour, ten minutes of it rest
disasters: stack
    @cargo build --bins --examples
    CAPT_DISASTERS=all cargo test --workspace --test operator -- --ignored --nocapture disasters

# Run all tests that need neither Go nor the stack
test:
    cargo test --workspace

# Explore every state of the small worlds; 1.4 million, 4 minutes
explore:
    CAPT_EXPLORE_STATES=all cargo test -p capt-sim --test explore -- --nocapture

# What the operator costs on a real API server, as a table: 1, 100 and 1,000 clusters, or the numbers given
bench-operator *clusters: stack
    cargo build --release --bin capt-operator --example bench_operator
    @cargo run -q --release --example bench_operator -- {{ clusters }}

# Every scenario with every single fault, and 2,000 lives by chance; `just faults 4` each fourth fault, `just faults all` also all of the kube layer
faults part="1":
    CAPT_FAULTS={{ part }} CAPT_SWARM=2000 cargo test --workspace --test proof --test program -- --nocapture schedules swarm virtual_time

# The explorer with one more held pass or lagging watch in each world (tens of millions, an hour and 8 GiB), ten thousand clusters in one world, two crashes at a time, a million lives
verify:
    CAPT_EXPLORE_STATES=all CAPT_EXPLORE_MORE=1 cargo test --release -p capt-sim --test explore -- --nocapture --test-threads=1
    CAPT_CLUSTERS=10000 cargo test --release -p capt-sim --test behaviour -- --nocapture scale::each_of_many
    CAPT_FAULTS=pairs CAPT_SWARM="${CAPT_SWARM:-1000000}" cargo test --release -p capt-sim --test proof -- --nocapture --test-threads=1

# Check formatting, lints, documentation, dependencies, boundaries between crates and generated files
check: fmt-check clippy doc deny boundaries crds-check

fmt-check:
    cargo fmt --all --check

clippy:
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy -p capt-status --all-targets --all-features -- -D warnings

doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences, sources and versions of dependencies; needs no network
deny:
    cargo deny check bans licenses sources

# Known vulnerabilities of dependencies; needs the advisory database from GitHub
advisories:
    cargo deny check advisories

# The pure crates see neither a runtime, a client nor a clock
boundaries:
    @.ci/boundaries

# Fail if crds/ is not what the Rust types say
crds-check: crds
    git diff --exit-code -- crds

# Write crds/ anew from the Rust types, and the install files that hold them
crds: && deploy
    @cargo build -q && rm -f crds/*.yaml
    @cargo run -q -- crds | awk '/^---$/ { close(file); file = text = ""; next } file { print > file; next } \
        { text = text $0 "\n" } $1 == "name:" { file = "crds/" $2 ".yaml"; printf "%s", text > file }'
    @git status --short crds

# Write the install files anew from deploy/generator, the CRDs and the roles
deploy:
    UPDATE_DEPLOY=1 cargo test -q --workspace --test program -- rbac::the_files
    UPDATE_DEPLOY=1 cargo test -q --workspace --test repository -- install_files::every_file
    @git status --short metadata.yaml crds deploy

# A static binary for musl in an image of its own, as the Dockerfile makes it, but without a container engine; needs musl-gcc and buildah
image tag="ghcr.io/appthrust/capt:dev":
    rustup target add x86_64-unknown-linux-musl
    CC_x86_64_unknown_linux_musl=musl-gcc cargo build --locked --profile dist --target x86_64-unknown-linux-musl -p capt-operator --bin capt-operator --no-default-features --features otlp
    image=$(buildah from scratch) \
        && buildah copy -q "$image" target/x86_64-unknown-linux-musl/dist/capt-operator /capt-operator \
        && buildah config --user 65532:65532 --entrypoint '["/capt-operator"]' "$image" \
        && buildah commit -q --rm "$image" {{ tag }}
    @ls -l target/x86_64-unknown-linux-musl/dist/capt-operator | awk '{ print $5 " bytes: the binary" }'

# The crates that the operator is built from, as a bill of materials in CycloneDX: target/capt-operator.cdx.json
sbom:
    @command -v cargo-cyclonedx >/dev/null || cargo install --locked cargo-cyclonedx@0.5.9
    cargo cyclonedx --manifest-path bins/capt-operator/Cargo.toml --no-default-features --features otlp --target x86_64-unknown-linux-musl --no-build-deps --format json --override-filename capt-operator.cdx
    mv bins/capt-operator/capt-operator.cdx.json target/ && find . -name '*.cdx.json' -not -path './target/*' -delete

# Build helm and clusterctl, which the tests of the install files run (7 minutes once); needs Go
install-tools:
    @tests/stack/build.sh --tools

# Try the install files with the real kubectl, helm and clusterctl on a real API server
test-install: stack install-tools
    cargo test --workspace --test install_tools -- --ignored --test-threads=2

# Write the generated documents anew
docs:
    UPDATE_DOCS=1 cargo test --workspace --test repository --test program -- states_doc looking
    UPDATE_DOCS=1 cargo test --workspace --test proof -- every_defect

# Prove that capt-status needs no standard library: a program with a panic handler of its own uses it
no-std:
    @# Fewer than ten dependencies, proc-macros and itself aside.
    test "$(cargo tree -p capt-status -e normal,no-proc-macro --prefix none | awk '{ print $1 }' | sort -u | wc -l)" -le 10
    cargo build --manifest-path tests/no-std/Cargo.toml --target-dir target/no-std

# Run the examples of capt-status, which check what they show
examples-status:
    cargo run -q -p capt-status --example database
    cargo run -q -p capt-status --features k8s-openapi --example k8s_openapi
    cargo test -q -p capt-status --features k8s-openapi --lib condition

# Change the code of a crate in hundreds of ways and see whether its tests notice; `just mutants capt-status -f '**/step.rs'`
mutants crate *arguments:
    @command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants@27.1.0
    CAPT_SWEEP=97 PROPTEST_CASES=32 cargo mutants -p {{ crate }} --profile mutants --timeout 90 {{ arguments }} -- --lib --tests

# Write anew what the Go libraries say of conditions and objects; needs Go
go-cases:
    cd crates/capt-status/tests/go && KUBECONFIG=/dev/null go run . ../../src/kstatus/health.lua > ../as_go_does.jsonl
    @git status --short crates/capt-status/tests
