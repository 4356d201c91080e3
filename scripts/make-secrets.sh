#!/bin/sh
# Makes the secrets of docker-compose.yml, each in a file in .secrets/. What is there stays as it is.
set -eu
cd "${1:-$(dirname "$0")/..}"
mkdir -p .secrets
# Only this user enters the folder. The files can be read by the users of the containers, to which they are given one by one.
chmod 700 .secrets
cd .secrets

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
# make NAME TEXT: the file gets its name when it is complete.
make() {
  [ -e "$1" ] && return
  printf '%s\n' "$2" >"$1.half"
  chmod 444 "$1.half"
  mv "$1.half" "$1"
}

make secret-key "$(random)$(random)"
make postgres-password "$(random)"
make redis-password "$(random)"
make redis.conf "requirepass $(cat redis-password)"
make redis-url "redis://:$(cat redis-password)@redis:6379"
make admin-database-url "postgresql://gatewright:$(cat postgres-password)@postgres:5432/gatewright"
make migration-database-url "postgresql://gatewright_owner:$(random)@postgres:5432/gatewright"
make database-url "postgresql://gatewright_service:$(random)@postgres:5432/gatewright"
