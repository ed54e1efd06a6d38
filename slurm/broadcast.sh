#!/bin/sh
# Keep files on a disk of this node, each once per content: sh toolkit-broadcast.sh look|keep FOLDER MIB JOB [SHA BYTES]...
#
# look prints the SHA-256 of each missing file, and makes room: it deletes files that no job has used for an hour, the
# oldest first. keep renames each copy .SHA.JOB.part in the folder to its SHA-256, if the bytes of the copy are right.
step=$1 folder=$2 most=$(($3 * 1024)) job=$4
shift 4
umask 077
if ! mkdir -p "$folder" || ! [ -O "$folder" ]; then
    echo "job: $folder on $(hostname) belongs to another user" >&2
    exit 1
fi
if [ "$(stat -f -c %T "$folder")" = tmpfs ]; then
    echo "job: $folder on $(hostname) is in memory, which the job needs itself" >&2
    exit 1
fi
exec 9> "$folder/.lock" && flock 9 || exit 1
find "$folder" -name '.*.part' -mmin +60 -exec rm -f {} +
used() { du -sk "$folder" | cut -f1; }
free() { df -Pk "$folder" | awk 'END { print $4 }'; }
wanted=0
absent=
while [ "$#" -ge 2 ]; do
    sha=$1 bytes=$2 part="$folder/.$1.$job.part"
    shift 2
    if [ -f "$folder/$sha" ] && [ "$(stat -c %s "$folder/$sha")" = "$bytes" ]; then
        touch "$folder/$sha"
        rm -f "$part"
    elif [ "$step" = look ]; then
        wanted=$((wanted + bytes / 1024 + 1))
        absent="$absent$sha
"
    elif echo "$sha  $part" | sha256sum --check --status 2> /dev/null; then
        mv "$part" "$folder/$sha" || exit 1
    else
        rm -f "$part"
        echo "job: the copy on $(hostname) is not the file that was sent" >&2
        exit 1
    fi
done
# At least 1 GiB stays free for the job itself.
while [ "$wanted" -gt 0 ] && { [ "$(used)" -gt $((most - wanted)) ] || [ "$(free)" -lt $((wanted + 1048576)) ]; }; do
    old=$(find "$folder" -maxdepth 1 -type f -name '[0-9a-f]*' -mmin +60 -printf '%T@ %p\n' | sort -n | head -n 1)
    if [ -z "$old" ]; then
        echo "job: $(hostname) has no room for $((wanted / 1024)) MiB in $folder" >&2
        exit 1
    fi
    rm -f "${old#* }"
done
printf %s "$absent"
