#!/usr/bin/env bash
# Builds the real stack that tests and the demo run against: etcd, kube-apiserver,
# kube-controller-manager, Cluster API core and provider-terraform, from the Go modules under
# modules/ (versions and checksums stand in their go.mod and go.sum, nowhere else).
#
#   build.sh           build what is missing; print the directory
#   build.sh --tofu    build OpenTofu, for machines without terraform; print the directory
#   build.sh --tools   build helm and clusterctl, which the tests of the install files run; print the
#                      directory
#   build.sh --paths   build nothing; print "name<TAB>path" for each part, with an empty path
#                      for a part that is missing (this is what the Rust crate reads)
#
# Everything lands outside the tree, in ${CAPT_STACK_CACHE:-${XDG_CACHE_HOME:-~/.cache}/capt-stack}/<key>,
# where the key covers versions, checksums and build flags. A part is built under a temporary name
# and renamed when it is complete, so whatever has its final name is finished.
# As with envtest, TEST_ASSET_ETCD, TEST_ASSET_KUBE_APISERVER and TEST_ASSET_KUBECTL name a binary,
# and KUBEBUILDER_ASSETS a directory that holds some of them; what they name is used, not built.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${CAPT_STACK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/capt-stack}

# binary | module directory | package | linker variable that gets the version of module ... (optional)
parts='etcd|etcd|go.etcd.io/etcd/server/v3|
kube-apiserver|kubernetes|k8s.io/kubernetes/cmd/kube-apiserver|k8s.io/component-base/version.gitVersion=k8s.io/kubernetes
kube-controller-manager|kubernetes|k8s.io/kubernetes/cmd/kube-controller-manager|k8s.io/component-base/version.gitVersion=k8s.io/kubernetes
kubectl|kubernetes|k8s.io/kubernetes/cmd/kubectl|k8s.io/component-base/version.gitVersion=k8s.io/kubernetes
capi-core|cluster-api|sigs.k8s.io/cluster-api/core|sigs.k8s.io/cluster-api/version.gitVersion=sigs.k8s.io/cluster-api
provider-terraform|provider-terraform|github.com/upbound/provider-terraform/cmd/provider|sigs.k8s.io/controller-runtime/pkg/metrics/server.DefaultBindAddress=0'
tofu_part='terraform|opentofu|github.com/opentofu/opentofu/cmd/tofu|'
# Apart from the others: what nobody runs but these tests must not make the stack build anew.
tool_parts='clusterctl|clusterctl|sigs.k8s.io/cluster-api/cmd/clusterctl|sigs.k8s.io/cluster-api/version.gitVersion=sigs.k8s.io/cluster-api
helm|helm|helm.sh/helm/v4/cmd/helm|helm.sh/helm/v4/internal/version.version=helm.sh/helm/v4'
# Without cgo no C compiler is needed. An API server that calls itself v0.0.0 misleads clients and
# Cluster API's version checks, hence the stamps. The provider's metrics port is fixed (8080) and
# has no flag; 0 turns it off, so that several stacks can run on one machine.
flags=(-mod=readonly -trimpath)
strip='-s -w'
export CGO_ENABLED=0 GOWORK=off

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

key_of() { # key_of <what is built> <module directory>...
  local what=$1 m; shift
  { printf '%s\n' "$what" "${flags[*]} $strip $CGO_ENABLED"; uname -sm
    for m in "$@"; do cat "$here/modules/$m/go.mod" "$here/modules/$m/go.sum"; done; } | sha256sum | cut -c1-16
}
dir=$root/$(key_of "$parts" etcd kubernetes cluster-api provider-terraform)
tofu_dir=$root/tofu-$(key_of "$tofu_part" opentofu)
tools_dir=$root/tools-$(key_of "$tool_parts" clusterctl helm)

# given <binary>: the path that the user's environment names for it, or nothing
given() {
  local name variable=''
  case $1 in
    etcd) variable=TEST_ASSET_ETCD ;;
    kube-apiserver) variable=TEST_ASSET_KUBE_APISERVER ;;
    kubectl) variable=TEST_ASSET_KUBECTL ;;
  esac
  if [ -n "$variable" ] && [ -n "${!variable:-}" ]; then printf '%s' "${!variable}"; return; fi
  name=${KUBEBUILDER_ASSETS:-/nonexistent}/$1
  if [ -x "$name" ]; then printf '%s' "$name"
  elif [ "$1" = kubectl ]; then command -v kubectl || true; fi
}

# located <binary>: where it is now, or nothing
located() {
  local path; path=$(given "$1")
  if [ -z "$path" ] && [ -x "$dir/bin/$1" ]; then path=$dir/bin/$1; fi
  printf '%s' "$path"
}

find_terraform() { # on PATH, else the OpenTofu that --tofu built
  if ! command -v terraform && [ -x "$tofu_dir/terraform" ]; then printf '%s' "$tofu_dir/terraform"; fi
}

need_go() { # need_go <module directory>
  local want have
  want=$(awk '$1 == "go" { print $2; exit }' "$here/modules/$1/go.mod")
  command -v go >/dev/null || die "Go $want or newer is needed to build the stack, and there is no \`go\` on PATH: install it from https://go.dev/dl/ or with your package manager"
  have=$(cd "$here/modules/$1" && go env GOVERSION 2>/dev/null) || have=$(go version | awk '{ print $3 }')
  have=${have#go}
  [ "$(printf '%s\n' "$want" "$have" | sort -V | head -1)" = "$want" ] ||
    die "Go $want or newer is needed to build the stack, and this is $have: install it from https://go.dev/dl/, or set GOTOOLCHAIN=auto to have Go fetch it"
}

build() { # build <part> <out directory>
  local name module package stamp out=$2 start variable of version
  IFS='|' read -r name module package stamp <<<"$1"
  need_go "$module"
  mkdir -p "$out"
  local ld=$strip
  if [ -n "$stamp" ]; then
    variable=${stamp%%=*} of=${stamp#*=}
    version=$(awk -v m="$of" '$1 == m && $2 ~ /^v/ { print $2; exit }' "$here/modules/$module/go.mod")
    ld="$ld -X $variable=${version:-$of}"
  fi
  say "$name: downloading and building $package"
  start=$SECONDS
  (cd "$here/modules/$module" && go build "${flags[@]}" -ldflags "$ld" -o "$out/.$name.$$" "$package")
  mv "$out/.$name.$$" "$out/$name"
  say "$name: built in $((SECONDS - start)) s, $(($(stat -c %s "$out/$name") / 1048576)) MiB"
}

# The manifests that the processes need, from the very modules that were built.
manifests() {
  local start=$SECONDS capi provider tmp=$dir/.manifests.$$
  need_go cluster-api
  say "manifests: copying CRDs, roles and webhooks of Cluster API core and provider-terraform"
  # The zip may be absent where the binaries were built on another machine and copied here.
  capi=$(cd "$here/modules/cluster-api" && go mod download -json sigs.k8s.io/cluster-api | awk -F'"' '$2 == "Dir" { print $4 }')
  provider=$(cd "$here/modules/provider-terraform" && go mod download -json github.com/upbound/provider-terraform | awk -F'"' '$2 == "Dir" { print $4 }')
  mkdir -p "$tmp"/cluster-api/{crds,rbac,webhook} "$tmp/provider-terraform/crds"
  cp "$capi"/core/config/crd/bases/*.yaml "$tmp/cluster-api/crds/"
  cp "$capi"/core/config/rbac/{role,aggregated_role}.yaml "$tmp/cluster-api/rbac/"
  cp "$capi"/core/config/webhook/manifests.yaml "$tmp/cluster-api/webhook/"
  cp "$provider"/package/crds/*.yaml "$tmp/provider-terraform/crds/"
  # The module cache is read-only, and so are copies from it; a cache must be removable.
  chmod -R u+w "$tmp"
  mv "$tmp" "$dir/manifests"
  say "manifests: copied in $((SECONDS - start)) s"
}

missing() { # the parts that have to be built, one a line
  local part
  while IFS= read -r part; do
    [ -n "$(located "${part%%|*}")" ] || printf '%s\n' "$part"
  done <<<"$parts"
}

for variable in TEST_ASSET_ETCD TEST_ASSET_KUBE_APISERVER TEST_ASSET_KUBECTL; do
  if [ -n "${!variable:-}" ] && [ ! -x "${!variable}" ]; then
    die "$variable=${!variable} is not an executable file: correct it, or unset it"
  fi
done
if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ ! -d "$KUBEBUILDER_ASSETS" ]; then
  die "KUBEBUILDER_ASSETS=$KUBEBUILDER_ASSETS is not a directory: correct it, or unset it"
fi

case ${1:-} in
  '') ;;
  --tofu)
    trap 'rm -f "$tofu_dir/".*.$$' EXIT
    if [ ! -x "$tofu_dir/terraform" ]; then
      say "OpenTofu takes 8 to 25 minutes to build; it is cached in $tofu_dir"
      build "$tofu_part" "$tofu_dir"
    fi
    printf '%s\n' "$tofu_dir"; exit ;;
  --tools)
    trap 'rm -f "$tools_dir/".*.$$' EXIT
    while IFS= read -r part; do
      [ -x "$tools_dir/${part%%|*}" ] || build "$part" "$tools_dir"
    done <<<"$tool_parts"
    printf '%s\n' "$tools_dir"; exit ;;
  --paths)
    while IFS='|' read -r name _; do printf '%s\t%s\n' "$name" "$(located "$name")"; done <<<"$parts"
    while IFS='|' read -r name _; do
      [ -x "$tools_dir/$name" ] && printf '%s\t%s\n' "$name" "$tools_dir/$name" || printf '%s\t\n' "$name"
    done <<<"$tool_parts"
    printf 'terraform\t%s\n' "$(find_terraform)"
    [ -d "$dir/manifests" ] && printf 'manifests\t%s\n' "$dir/manifests" || printf 'manifests\t\n'
    printf 'cache\t%s\n' "$dir"
    exit ;;
  *) die "unknown argument \`$1\`: use no argument, --tofu, --tools or --paths" ;;
esac

trap 'rm -rf "$dir/bin/".*.$$ "$dir/.manifests.$$"' EXIT
todo=$(missing)
if [ -n "$todo" ] || [ ! -d "$dir/manifests" ]; then
  mkdir -p "$dir/bin"
  # Two builds at once would only share the processor; the second one waits and finds it done.
  exec 9>"$root/lock"
  flock -n 9 || { say "another build of the stack is running; waiting for it"; flock 9; }
  todo=$(missing)
  start=$SECONDS
  if [ -n "$todo" ]; then
    say "building the stack in $dir (10 to 20 minutes on two cores, once)"
    while IFS= read -r part; do build "$part" "$dir/bin"; done <<<"$todo"
  fi
  [ -d "$dir/manifests" ] || manifests
  say "the stack is complete after $((SECONDS - start)) s"
fi
[ -n "$(find_terraform)" ] || die "the stack is built, but provider-terraform needs \`terraform\` on PATH: install it, or run \`just stack-tofu\` to build OpenTofu under that name (8 to 25 minutes)"
printf '%s\n' "$dir"
