#!/bin/sh
# The last words of an image's making: nothing of the way here stays, and nothing that differs from one time to the next.
set -eu
# Apptainer lends a build the /tmp and /var/tmp of the machine that it runs on, so these are left alone; and so is all
# else that is mounted, as it is not the image's.
for folder in /var/log /var/cache /var/lib/apt/lists /run; do
    if ! grep -q " $folder" /proc/self/mounts; then rm -rf "${folder:?}"/*; fi
done
rm -rf /build
rm -f /etc/dpkg/dpkg.cfg.d/zz-toolkit /var/lib/dpkg/*-old /etc/*- /var/lib/apt/extended_states /etc/.pwd.lock
rm -rf /usr/include /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/bug \
    /usr/share/bash-completion /usr/share/doc-base /usr/share/gdb
rm -rf /usr/lib/python3.*/test /usr/lib/python3.*/ensurepip /usr/lib/python3.*/idlelib /usr/lib/python3.*/turtledemo \
    /usr/lib/python3.*/lib2to3 /usr/lib/python3.*/pydoc_data
find /usr/share/doc -type f ! -name copyright -delete
find /usr/share/doc -depth -type d -empty -delete
find /usr/lib /usr/local/lib -type f \( -name '*.a' -o -name '*.la' \) -delete
mkdir -p /var/cache/apt/archives/partial /var/lib/apt/lists/partial
