#!/bin/sh
# Installs what is missing of the named package sets on Debian 12: build, test, ci.
# usage: deploy/packages.sh build|test|ci
# Needs the network only where something is missing, and root or sudo then.
set -eu

build="gcc libc6-dev meson ninja-build pkg-config python3
       libgrpc-dev libprotobuf-c-dev protobuf-c-compiler libprotobuf-dev
       coinor-libcbc-dev libuv1-dev libsqlite3-dev libyaml-dev libjansson-dev libxxhash-dev libssl-dev
       zlib1g-dev libzstd-dev"
# libcmocka-dev: unit tests; the Python packages and plug-in: a stock gRPC client against the daemon;
# systemd: checks of the unit file; man-db, groff-base: of the man pages; g++: of the public headers and of
# kernels on the CPU, binutils: names of kernels; Open MPI: training on eight ranks (MPICH is slow where ranks
# share cores); procps: finding ranks to kill.
test="$build g++ libcmocka-dev python3-grpcio python3-protobuf python3-yaml protobuf-compiler
      protobuf-compiler-grpc systemd man-db groff-base git libopenmpi-dev openmpi-bin procps"
# clang and its runtime: the second compiler and the sanitizers.
ci="$test clang libclang-rt-14-dev"

case "${1:-}" in
build) wanted=$build ;;
test) wanted=$test ;;
ci) wanted=$ci ;;
*)
    echo "usage: deploy/packages.sh build|test|ci" >&2
    exit 2
    ;;
esac

missing=
for package in $wanted; do
    case "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)" in
    *" installed") ;;
    *) missing="$missing $package" ;;
    esac
done
[ -z "$missing" ] && exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "packages.sh: not root and no sudo; ask an administrator to install:$missing" >&2
        exit 1
    }
    as_root=sudo
fi
echo "installing:$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $as_root apt-get update &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "packages.sh: apt-get failed; these are missing:$missing" >&2
    exit 1
fi
