# Apptainer on a Debian release whose C library is too old: the image has Apptainer's programs with their libraries.
# The classic builder and BuildKit both build it: no heredoc, no RUN --mount, no COPY --chmod.
ARG BUILDER=toolkit-builder:latest
ARG BASE=toolkit-base:bookworm
FROM ${BUILDER} AS moved
ARG DEBIAN_FRONTEND=noninteractive
# `ldd` lists a program's loader and libraries; patchelf then writes their new paths into the program.
# A wrapper around ld.so would not work, because Apptainer starts itself again through /proc/self/exe.
RUN set -eu; \
    apt-get update; \
    apt-get install -y --no-install-recommends patchelf libc-bin; \
    mkdir -p /moved/opt/apptainer/lib /moved/usr/bin; \
    programs="/usr/bin/apptainer /usr/lib/x86_64-linux-gnu/apptainer/bin/starter \
        /usr/bin/squashfuse /usr/bin/squashfuse_ll /usr/bin/mksquashfs /usr/bin/unsquashfs"; \
    for program in $programs; do \
        ldd "$program" | sed -nE 's/.*(=> |^\t)(\/[^ ]+) .*/\2/p'; \
    done | sort -u | while read -r library; do cp -L "$library" /moved/opt/apptainer/lib/; done; \
    cp -L /lib/x86_64-linux-gnu/libnss_files.so.2 /lib/x86_64-linux-gnu/libnss_dns.so.2 \
        /lib/x86_64-linux-gnu/libresolv.so.2 /moved/opt/apptainer/lib/; \
    loader=$(basename "$(ldd /usr/bin/apptainer | sed -nE 's/^\t(\/[^ ]+ld-linux[^ ]*) .*/\1/p')"); \
    for program in $programs; do \
        mkdir -p "/moved$(dirname "$program")"; \
        cp -L "$program" "/moved$program"; \
        patchelf --set-interpreter "/opt/apptainer/lib/$loader" --force-rpath \
            --set-rpath /opt/apptainer/lib "/moved$program"; \
    done; \
    cp -a /usr/lib/x86_64-linux-gnu/apptainer/lib /moved/usr/lib/x86_64-linux-gnu/apptainer/; \
    ln -s apptainer /moved/usr/bin/singularity; \
    mkdir -p /moved/var/lib/apptainer/mnt/session /moved/etc; \
    cp -a /etc/apptainer /moved/etc/

FROM ${BASE}
LABEL toolkit="builder"
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends fuse3 uidmap ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=moved /moved/ /
RUN apptainer --version && squashfuse_ll --help 2>&1 | head -n 1
