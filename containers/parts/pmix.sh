#!/bin/sh
# Compile PMIx. Runs in its unpacked sources; the words of the call go to configure. PREFIX: where to; JOBS: at once.
set -eu
# Without this header 4.2.2 does not compile everywhere; Debian adds it too, by its patch mca-fix.
file=src/mca/base/pmix_mca_base_var.c
grep -q pmix_mca_base_vari.h "$file" || sed -i '/pmix_show_help.h/a #include "src/mca/base/pmix_mca_base_vari.h"' "$file"
[ -x configure ] || ./autogen.pl
./configure --prefix="$PREFIX" --disable-static --disable-man-pages "$@"
make -j "$JOBS"
make install
