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
test-stack: stack
    cargo test --workspace -- --ignored --test-threads=2

# Write crds/ anew from the Rust types
crds:
    @cargo build -q && rm -f crds/*.yaml
    @cargo run -q -- crds | awk '/^---$/ { close(file); file = text = ""; next } file { print > file; next } \
        { text = text $0 "\n" } $1 == "name:" { file = "crds/" $2 ".yaml"; printf "%s", text > file }'
    @git status --short crds
