#!/usr/bin/env bash
# A worker of a group in bash alone: it joins, does the orders of its partitions, commits, and leaves.
# usage: worker.sh [HOST [PORT]]; ends when nothing is left to do
set -euo pipefail
exec 3<> "/dev/tcp/${1:-127.0.0.1}/${2:-9094}"
me="worker-$$" number=0

# The payload of the answer to a command, or the end of the program with the broker's error.
ask() {
  number=$((number + 1))
  printf 'V1|%d|%s\n' "$number" "$1" >&3
  IFS='|' read -r _ _ result payload <&3
  if [ "$result" != OK ]; then echo "$1: $payload" >&2; exit 1; fi
}

ask "JOIN|billing orders $me"
generation=${payload#generation=} generation=${generation%% *}
partitions=${payload#*assigned=[} partitions=${partitions%]*}
for partition in ${partitions//,/ }; do
  ask "OFFSET|billing orders $partition"
  offset=${payload#offset=}
  if [ "$offset" = -1 ]; then offset=0; fi
  while true; do
    ask "CONSUME|orders $partition $offset max=1 encoding=percent"
    message=${payload#messages=} message=${message% hw=*}
    if [ -z "$message" ]; then break; fi
    printf 'partition %s, order %s: %b\n' "$partition" "${message%%:*}" "$(tr % '\n' <<< "${message#*:}" | sed '2,$s/^\(..\)/\\x\1/' | tr -d '\n')"
    offset=$((${message%%:*} + 1))
    ask "COMMIT|billing orders $me $generation $partition $offset"
  done
done
ask "LEAVE|billing orders $me $generation"
