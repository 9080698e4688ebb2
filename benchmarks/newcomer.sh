#!/usr/bin/env bash
# What a newcomer waits for: a fresh clone and an empty home folder, then demo, tests and the guide "add a selector".
#   benchmarks/newcomer.sh [STEP...]     steps: demo guide test; all of them unless named
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d)
mkdir "$place/home"
export HOME=$place/home
unset PYTHONPATH PYTHONPYCACHEPREFIX VIRTUAL_ENV

step() { # NAME LINES COMMAND...: runs it and prints its last lines and the minutes it took
  local name=$1 lines=$2 began=$SECONDS code=0
  shift 2
  "$@" >"$place/$name.log" 2>&1 </dev/null || code=$?
  printf '== %s: %d min %02d s, exit code %d\n' "$name" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)) "$code"
  tail -n "$lines" "$place/$name.log"
  return "$code"
}

guide() { # examples/add_selector/README.md, to the letter
  cp -r "$place/clone/examples/add_selector" "$place/add_selector"
  cd "$place/add_selector"
  # shellcheck disable=SC1091
  . "$place/clone/.venv/bin/activate"
  PYTHONPATH=. skillarena run -m --config-dir conf selector=rare_words,vector,none benchmark.limit=4
  PYTHONPATH=. skillarena select "put a hot mug in coffeemachine" --config-dir conf selector=rare_words selector.top_k=2
  PYTHONPATH=. skillarena retrieve-eval --config-dir conf selector=rare_words,random selector.top_k=50
}

echo "folder: $place"
step clone 0 git clone -q "$repository" "$place/clone"
cd "$place/clone"
[ $# -gt 0 ] || set -- demo guide test
for name in "$@"; do
  case $name in
    demo) step demo 8 make demo ;;
    guide) (step guide 6 guide) ;;
    test) step test 3 make test ;;
    *) echo "no such step: $name (demo, guide, test)" >&2 && exit 2 ;;
  esac
done
