#!/bin/sh
# If the user starts an app of the image (SCIF), the app's folders come first on the search paths.
if [ -n "${SINGULARITY_APPNAME:-}" ]; then
    SCIF_APPS=/scif/apps
    SCIF_APPROOT=$SCIF_APPS/$SINGULARITY_APPNAME
    if [ ! -d "$SCIF_APPROOT" ]; then
        echo "There is no app $SINGULARITY_APPNAME in this image" >&2
        exit 1
    fi
    PATH=$SCIF_APPROOT:$PATH
    if [ -d "$SCIF_APPROOT/bin" ]; then PATH=$SCIF_APPROOT/bin:$PATH; fi
    if [ -d "$SCIF_APPROOT/lib" ]; then LD_LIBRARY_PATH=$SCIF_APPROOT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; fi
    export SINGULARITY_APPNAME SCIF_APPS SCIF_APPROOT PATH LD_LIBRARY_PATH
    for script in "$SCIF_APPROOT/scif/env/01-base.sh" "$SCIF_APPROOT/scif/env/90-environment.sh"; do
        if [ -f "$script" ]; then . "$script"; fi
    done
fi
