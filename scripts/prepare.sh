# Sourced by ./run and ./test: installs the Debian packages that are missing, and nothing else. Says what
# it does; says nothing when there is nothing to do.

berth_packages_build="g++ cmake ninja-build ccache mold libfmt-dev libexpected-dev libyaml-cpp-dev libcli11-dev
  nlohmann-json3-dev zlib1g-dev pkg-config coinor-libclp-dev coinor-libcbc-dev libgfortran-12-dev liblemon-dev
  libhwloc-dev libsqlite3-dev libboost-dev libssl-dev"
berth_packages_test="libgtest-dev libgmock-dev librapidcheck-dev chromium openssl clang-format-14 prometheus python3-torch"
berth_packages_bench="libbenchmark-dev"

# Checkouts in different folders share one compiler cache: paths below the checkout count as relative.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1

# berth_need PACKAGE…: installs those that dpkg does not know as installed.
berth_need() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "installing: ${missing[*]}" >&2
  local sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  local log
  log=$(mktemp)
  if ! { "${sudo[@]}" apt-get update -qq &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    echo "could not install: ${missing[*]}" >&2
    return 1
  fi
  rm -f "$log"
}

# berth_need_command COMMAND PACKAGE…: for tools that may come from elsewhere than Debian's package.
berth_need_command() {
  command -v "$1" >/dev/null 2>&1 && return 0
  shift
  berth_need "$@"
}

# berth_build PRESET [TARGET…]: configures once, builds quietly; the whole log only if it fails.
berth_build() {
  local preset=$1 log started=$SECONDS
  shift
  log=$(mktemp)
  if [ ! -f "build/$preset/build.ninja" ] && ! cmake --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  if ! cmake --build --preset "$preset" ${1:+--target "$@"} >"$log" 2>&1; then
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" >&2
    rm -f "$log"
    echo "the build failed (preset $preset)" >&2
    return 1
  fi
  grep -q 'no work to do' "$log" || echo "built ($preset) in $((SECONDS - started)) s" >&2
  rm -f "$log"
}
