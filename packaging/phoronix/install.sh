#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the command that the Phoronix Test Suite runs: of ENCORE, a program, or built from
# ENCORE_SOURCE, a clone where tools/setup.sh has run.
program="$ENCORE"
if [ -z "$program" ]; then
  program="$PWD/build/bin/encore"
  cmake -S "$ENCORE_SOURCE" -B build -DCMAKE_BUILD_TYPE=Release &&
    cmake --build build --target encore_tool --parallel "${NUM_CPU_CORES:-2}"
fi
"$program" --version
echo $? > ~/install-exit-status
cat > encore <<END
#!/bin/sh
"$program" bench "\$@" --format json > "\$LOG_FILE"
echo \$? > ~/test-exit-status
END
chmod +x encore
