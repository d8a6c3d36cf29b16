#!/bin/sh
# kubectl for the playground, whose pods have no containers: exec runs the command on the node of the pod, with the socket of
# its daemon, as in Turnout's own pod. Everything else is done by the real kubectl, which also refuses what it refuses.
refuse() { echo "error: $1" >&2; exit 1; }
for each in "$@"; do
  case $each in exec) break ;; get | config | version | __complete*) exec "$REAL_KUBECTL" "$@" ;; esac
done
[ "$1" = exec ] || exec "$REAL_KUBECTL" "$@"
shift
namespace='' container='' pod=''
while [ $# -gt 0 ]; do
  case $1 in
    --) shift; break ;;
    --namespace=*) namespace=${1#*=} ;;
    --container=*) container=${1#*=} ;;
    -*) refuse "unknown flag: $1" ;;
    *) [ -z "$pod" ] || refuse "you must specify a command after --"; pod=$1 ;;
  esac
  shift
done
[ $# -gt 0 ] || refuse "you must specify at least one command for the container"
found=$("$REAL_KUBECTL" get pod --namespace="$namespace" --output='jsonpath={.spec.nodeName} {.spec.containers[*].name}' -- "$pod") || exit 1
node=${found%% *}
case " ${found#* } " in *" $container "*) ;; *) refuse "container $container not found in pod $pod" ;; esac
TURNOUT_STATUS_SOCKET=$PLAYGROUND_STATE/$node.sock
export TURNOUT_STATUS_SOCKET
nsenter --net="/run/netns/turnout-$PLAYGROUND_PID-$node" "$@"
code=$?
[ "$code" -eq 0 ] || echo "command terminated with exit code $code" >&2
exit "$code"
