#!/bin/sh
# Check the Debian packages that the virtual environment and the test bench need: root installs missing ones with
# apt-get, other users get a list of them. If none is missing, the network is not used.
#
#   prerequisites.sh python          for `make install`
#   prerequisites.sh python bench    for the demo and the tests
#   prerequisites.sh bench node      for `make e2e-node`
#   prerequisites.sh brokers         for `make demo-local`
#   prerequisites.sh browser         for the tests of pages in `make e2e`
set -eu

missing=""
need() { missing="$missing $1"; }

# A separate Debian package; without it `python3 -m venv` creates an environment without pip.
has_venv() { python3 -c 'import ensurepip, venv' 2>/dev/null; }
has_python() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
has_java() { java -version 2>&1 | grep -Eq 'version "(1[7-9]|[2-9][0-9])'; }
# Run beside go.mod: there Go 1.21 or later downloads the required toolchain, or fails if it may not.
has_go() {
    (cd "$(dirname "$0")/../kube" && GOTOOLCHAIN=${GOTOOLCHAIN:-auto} go version 2>/dev/null) |
        grep -Eq 'go1\.(2[6-9]|[3-9][0-9])'
}

look_for_brokers() {
    has_java || need default-jdk-headless
    command -v mvn >/dev/null || need maven
    command -v openssl >/dev/null || need openssl
    command -v setpriv >/dev/null || need util-linux
}

look() {
    missing=""
    for group in "$@"; do
        case $group in
        python)
            has_python || need python3
            has_venv || need python3-venv
            ;;
        bench)
            look_for_brokers
            has_go || need golang-go
            ;;
        brokers)
            look_for_brokers
            ;;
        browser)
            command -v chromium >/dev/null || need chromium
            ;;
        node)
            # The kind provider needs Docker and kind, which this script does not install.
            [ "${E2E_PROVIDER:-own}" = own ] || continue
            # docker.io depends on containerd and runc.
            command -v dockerd >/dev/null && command -v containerd >/dev/null || need docker.io
            command -v debootstrap >/dev/null || need debootstrap
            [ -x /usr/lib/cni/bridge ] || need containernetworking-plugins
            command -v iptables >/dev/null || need iptables
            command -v conntrack >/dev/null || need conntrack
            command -v ip >/dev/null || need iproute2
            ;;
        *)
            echo "usage: $0 python|bench|brokers|browser|node ..." >&2
            exit 2
            ;;
        esac
    done
}

look "$@"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Debian packages:$missing" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >&2
    # shellcheck disable=SC2086 # a list of words
    apt-get install -q -y --no-install-recommends $missing >&2
    look "$@"
fi

if [ -n "$missing" ]; then
    echo "Missing, or too old:$missing. Install them, for instance with: sudo apt-get install$missing" >&2
    case $missing in
    *golang-go*) echo "Go must be 1.26, or 1.21 and later with GOTOOLCHAIN=auto; an older Debian has it in backports." >&2 ;;
    esac
    exit 1
fi
