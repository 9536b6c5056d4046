# Sourced by ./run and ./test: installs the Debian packages that are missing, and nothing else. Says what
# it does; says nothing when there is nothing to do.

berth_packages_build="g++ cmake ninja-build ccache libfmt-dev libexpected-dev libyaml-cpp-dev libcli11-dev
  nlohmann-json3-dev zlib1g-dev pkg-config coinor-libclp-dev coinor-libcbc-dev libgfortran-12-dev liblemon-dev
  libhwloc-dev libsqlite3-dev libboost-dev libssl-dev"
berth_packages_test="xz-utils libgtest-dev libgmock-dev librapidcheck-dev chromium openssl clang-format-14 prometheus python3-torch"
berth_packages_bench="libbenchmark-dev"

# Checkouts in different folders share one compiler cache: paths below the checkout count as relative.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1

# berth_need PACKAGE…: installs those that dpkg does not know as installed. Whoever may not is told which they are.
berth_need() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null; then
    echo "this is no Debian: install what these packages of Debian 12 hold, then build with cmake: ${missing[*]}" >&2
    return 1
  fi
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    sudo=(sudo)
    # It asks here, where its question is seen.
    if ! command -v sudo >/dev/null || ! sudo true; then
      echo "packages are missing, and only root may install them: apt-get install --no-install-recommends ${missing[*]}" >&2
      return 1
    fi
  fi
  echo "installing: ${missing[*]}" >&2
  local log
  log=$(mktemp)
  # Another apt may be at work: it is waited for.
  if ! { "${sudo[@]}" apt-get update -qq -o DPkg::Lock::Timeout=300 &&
         "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 \
           --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
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

# berth_configure PRESET [OPTION=VALUE…]: once, and again when an option is to be another than it is.
berth_configure() {
  local preset=$1 option log
  shift
  local folder=build/$preset
  if [ -e build ] && [ ! -w build ] || [ -e "$folder" ] && [ ! -w "$folder" ]; then
    echo "$PWD/build belongs to somebody else: remove it (sudo rm -r build), or work in a clone of your own" >&2
    return 1
  fi
  local is_right=yes
  [ -f "$folder/build.ninja" ] || is_right=
  for option in "$@"; do
    grep -q "^${option%%=*}:BOOL=${option#*=}\$" "$folder/CMakeCache.txt" 2>/dev/null || is_right=
  done
  [ -z "$is_right" ] || return 0
  log=$(mktemp)
  if ! cmake --preset "$preset" "${@/#/-D}" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# berth_build PRESET [TARGET…]: builds quietly what is configured; the whole log only if it fails.
berth_build() {
  local preset=$1 log steps minutes=20 started=$SECONDS
  shift
  # A cache of root's, say from a ./run with sudo, would make every compilation fail.
  local cache=${CCACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/ccache}
  if [ -e "$cache" ] && [ ! -w "$cache" ] && [ -z "${CCACHE_READONLY:-}" ]; then
    echo "$cache is not yours: building without the compiler cache" >&2
    export CCACHE_DISABLE=1
  fi
  steps=$(ninja -C "build/$preset" -n "$@" 2>/dev/null | grep -cE '^\[[0-9]+/[0-9]+\] ') || true
  [ "$preset" != release ] || minutes=10
  [ "$steps" -lt 10 ] || echo "building ($preset): $steps steps; from nothing it takes about $minutes minutes on two cores" >&2
  log=$(mktemp)
  if ! cmake --build --preset "$preset" ${1:+--target "$@"} >"$log" 2>&1; then
    grep -vE '^\[[0-9]+/[0-9]+\] ' "$log" >&2
    rm -f "$log"
    echo "the build failed (preset $preset)" >&2
    return 1
  fi
  grep -q 'no work to do' "$log" || echo "built ($preset) in $((SECONDS - started)) s" >&2
  rm -f "$log"
}
