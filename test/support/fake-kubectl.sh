#!/bin/sh
# As much of kubectl as the plugin calls, on files in $FAKE. Refuses what kubectl refuses.
refuse() { echo "error: $1" >&2; exit 1; }
printf '%s\0' "$@" END >>"$FAKE/calls"
[ ! -e "$FAKE/refused" ] || { cat "$FAKE/refused" >&2; exit 1; }
while :; do
  case ${1-} in
    --context=* | --kubeconfig=* | --as=* | --request-timeout=*) shift ;;
    -*) refuse "unknown flag: $1" ;;
    *) break ;;
  esac
done
verb=$1
shift
namespace='' selector='' container='' separator='' positional=''
while [ $# -gt 0 ]; do
  case $1 in
    --) separator=1; shift; break ;;
    --namespace=*) namespace=${1#*=} ;;
    --selector=*) selector=${1#*=} ;;
    --container=*) container=${1#*=} ;;
    --output=* | --all-namespaces | --minify | --prefix | --tail=* | --stdin | --address=127.0.0.1) ;;
    -*) refuse "unknown flag: $1" ;;
    *) positional="$positional $1" ;;
  esac
  shift
done
case $verb$positional in
  "get pods") cat "$FAKE/pods-$selector" 2>/dev/null; exit 0 ;;
  "get nodes")
    [ "$selector" = kubernetes.io/os!=windows ] || refuse "unexpected selector"
    cat "$FAKE/nodes" 2>/dev/null || { echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1; } ;;
  "get pod")
    [ "$#" -eq 1 ] || refuse "one name is required"
    cat "$FAKE/pod-$namespace-$1" 2>/dev/null || { echo "Error from server (NotFound): pods \"$1\" not found" >&2; exit 1; } ;;
  "config view") printf 'default' ;;
  "logs") printf '[pod/%s/%s] a line\n' "$1" "$container" ;;
  port-forward*)
    # The pods of this kubectl are on this machine: nothing has to be forwarded.
    case $positional in *" :"*) ;; *) refuse "TYPE/NAME and list of ports are required for port-forward" ;; esac
    printf 'Forwarding from 127.0.0.1:%s -> %s\n' "${positional##*:}" "${positional##*:}"
    exec sleep 600 ;;
  exec*)
    [ -n "$separator" ] || refuse "a command is required after --"
    [ "$1" = turnout ] || refuse "unexpected command"
    pod=${positional# }
    [ -n "$container" ] || refuse "no container"
    [ -x "$FAKE/exec-$pod" ] || { echo "Error from server (NotFound): pods \"$pod\" not found" >&2; exit 1; }
    shift
    "$FAKE/exec-$pod" "$@" <&0 &
    child=$!
    trap 'kill "$child"; exit 143' TERM
    wait "$child"
    code=$?
    [ "$code" -eq 0 ] || echo "command terminated with exit code $code" >&2
    exit "$code" ;;
  *) refuse "unexpected: $verb$positional" ;;
esac
