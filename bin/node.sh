# Sets $node for the program beside it, which sets $here: the pinned Node.js, else one in PATH that is new enough.
node="$here/../node_modules/.bin/node"
if [ ! -x "$node" ]; then
  node=node
  version=$(node --version 2>/dev/null)
  version=${version#v}
  [ "${version%%.*}" -ge 26 ] 2>/dev/null || {
    echo "${0##*/}: cannot find Node.js 26 or newer: run 'npm run build' in ${here%/*}, or put it in PATH" >&2
    exit 1
  }
fi
