# Watches over one stack: sh supervise.sh <directory>, with the owner's pipe as standard input.
#
# The pipe closes when its owner ends, however it ends (a panic, a signal, kill -9), and then
# everything that belongs to the stack is killed. Each line of input is one order:
#   group N    the process group N belongs to the stack
#   extra P    the directory P, and its parent when empty, are removed too
#   discard    from now on, remove everything at the end
#   keep       from now on, keep the logs at the end (this is also the initial state)
#   stay       forget the owner; run until this process is terminated, then discard
set -u
directory=$1 groups='' extra='' outcome=keep stay=''

members() { # processes outside the known groups that still work inside the directory
  ls -l /proc/[0-9]*/cwd 2>/dev/null |
    sed -n "s|.*/proc/\([0-9]*\)/cwd -> $directory\(/.*\)\{0,1\}$|\1|p"
}

finish() {
  for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
  # Two empty looks in a row: a process may have forked just before it was killed.
  quiet=0
  while [ "$quiet" -lt 2 ]; do
    left=$(members)
    if [ -n "$left" ]; then kill -KILL $left 2>/dev/null; quiet=0; sleep 0.05; else quiet=$((quiet + 1)); fi
  done
  if [ -n "$extra" ]; then
    rm -rf -- "$extra"
    rmdir -- "${extra%/*}" 2>/dev/null # only if nobody else uses it
  fi
  if [ "$outcome" = discard ]; then rm -rf -- "$directory"; else rm -rf -- "$directory/etcd"; fi
  exit 0
}

while read -r order argument; do
  case $order in
    group) groups="$groups $argument" ;;
    extra) extra=$argument ;;
    discard | keep) outcome=$order ;;
    stay) stay=1; break ;;
  esac
done
[ -n "$stay" ] || finish

outcome=discard
trap 'kill "$sleeper" 2>/dev/null; finish' TERM INT HUP
while :; do
  sleep 86400 &
  sleeper=$!
  wait "$sleeper"
done
