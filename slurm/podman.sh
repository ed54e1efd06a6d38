#!/bin/sh
# Create a podman store on this node, and load an image into it: sh toolkit-podman.sh ARCHIVE NAME.
# A job script sources this file without arguments, so that its ranks use the same store.
#
# The default store is in the home folder, which nodes share. podman needs a local disk. Without
# a login session XDG_RUNTIME_DIR is also missing.
store=/tmp/toolkit-podman-$(id -u)
export XDG_RUNTIME_DIR="$store/run" CONTAINERS_STORAGE_CONF="$store/storage.conf" PODMAN_IGNORE_CGROUPSV1_WARNING=1
if [ "$#" -eq 2 ]; then
    umask 077
    if ! mkdir -p "$store" "$store/run" || ! [ -O "$store" ]; then
        echo "job: $store on $(hostname) belongs to another user" >&2
        exit 1
    fi
    # settle [WORDS...]: write the configuration of the podman store, and test it.
    settle() {
        {
            printf '[storage]\ndriver = "overlay"\nrunroot = "%s/run/containers"\n' "$store"
            printf 'graphroot = "%s/images"\nrootless_storage_path = "%s/images"\n' "$store" "$store"
            [ "$#" -eq 0 ] || printf '[storage.options.overlay]\nmount_program = "%s"\n' "$1"
        } > "$CONTAINERS_STORAGE_CONF.$$" && mv "$CONTAINERS_STORAGE_CONF.$$" "$CONTAINERS_STORAGE_CONF"
        podman --cgroup-manager=cgroupfs info > /dev/null 2>&1
    }
    # If the kernel has no overlay file system for users, use fuse-overlayfs.
    [ -e "$CONTAINERS_STORAGE_CONF" ] || settle || settle "$(command -v fuse-overlayfs)" ||
        rm -f "$CONTAINERS_STORAGE_CONF"
    loaded=$(podman --cgroup-manager=cgroupfs load --quiet --input "$1") || exit
    podman --cgroup-manager=cgroupfs tag "${loaded##*: }" "$2"
fi
