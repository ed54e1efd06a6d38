#!/bin/sh
# Gives podman a store on this node, and loads an image into it: sh toolkit-podman.sh ARCHIVE NAME.
# A job script sources it without words, so that its ranks use the same store.
#
# The usual store is below the home folder, which the nodes of a cluster share; podman wants a disk of the node. Without
# a login session there is no XDG_RUNTIME_DIR either.
store=/tmp/toolkit-podman-$(id -u)
export XDG_RUNTIME_DIR="$store/run" CONTAINERS_STORAGE_CONF="$store/storage.conf" PODMAN_IGNORE_CGROUPSV1_WARNING=1
if [ "$#" -eq 2 ]; then
    umask 077
    if ! mkdir -p "$store" "$store/run" || ! [ -O "$store" ]; then
        echo "job: $store on $(hostname) belongs to another user" >&2
        exit 1
    fi
    # settle [WORDS...]: write what podman reads of its store, and try it.
    settle() {
        {
            printf '[storage]\ndriver = "overlay"\nrunroot = "%s/run/containers"\n' "$store"
            printf 'graphroot = "%s/images"\nrootless_storage_path = "%s/images"\n' "$store" "$store"
            [ "$#" -eq 0 ] || printf '[storage.options.overlay]\nmount_program = "%s"\n' "$1"
        } > "$CONTAINERS_STORAGE_CONF.$$" && mv "$CONTAINERS_STORAGE_CONF.$$" "$CONTAINERS_STORAGE_CONF"
        podman --cgroup-manager=cgroupfs info > /dev/null 2>&1
    }
    # Where the kernel does not stack file systems for a user, fuse-overlayfs does.
    [ -e "$CONTAINERS_STORAGE_CONF" ] || settle || settle "$(command -v fuse-overlayfs)" ||
        rm -f "$CONTAINERS_STORAGE_CONF"
    loaded=$(podman --cgroup-manager=cgroupfs load --quiet --input "$1") || exit
    podman --cgroup-manager=cgroupfs tag "${loaded##*: }" "$2"
fi
