#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Tests pyencore.lab (python/pyencore/lab): reports against their schema, figures, pages,
# comparisons, and what the encore command writes.
#
#   tools/test_lab.sh                          with build/release/bin/encore, if it is there
#   tools/test_lab.sh path/to/encore [ARGUMENTS of pytest]
#
# Exit status: 0 all passed; 3 the packages could not be had, with one sentence; others: pytest's.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

encore="${1:-build/release/bin/encore}"
shift || true
tools/python_env.sh matplotlib==3.11.2 scipy==1.17.1 jinja2==3.1.6 jsonschema==4.26.0 \
  pytest==9.2.0 || exit 3
[[ -x "$encore" ]] && export ENCORE="$encore"
PYTHONPATH=python exec .deps/venv/bin/python -m pytest -q -p no:cacheprovider \
  python/tests/test_lab_*.py "$@"
