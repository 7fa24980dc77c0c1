#!/bin/sh
# Installs into the image's environment while it is built: `add.sh --extra worker` what pyproject.toml asks for there, in
# the versions of requirements.lock and checked against its hashes; `add.sh project` the project itself.
set -eu
here=$(dirname "$0")
add() { "$here/bin/uv" pip install --quiet --no-cache --compile-bytecode --python /opt/bothways "$@"; }
if [ "${1:-}" = project ]; then
    add --no-deps /wheels/*.whl
else
    add --constraint /opt/lock/requirements.lock --requirements /opt/lock/pyproject.toml "$@"
fi
