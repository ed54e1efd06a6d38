#!/bin/sh
# Make the accounts of a class on this node, and on the login node their folders, which all nodes share.
# usage: accounts.sh HOST; /etc/toolkit/accounts holds their names and, on the login node, their keys. It may be repeated.
set -eu
given=/etc/toolkit/accounts

known() { # known NAME NUMBER: nobody logs in by password, and the number is the same on every node
    id -u "$1" > /dev/null 2>&1 ||
        useradd --uid "$2" --user-group --no-create-home --shell /bin/bash --password '*' "$1"
}

owned() { # owned NAME MODE FOLDER; /work is everybody's, so what has that name there need not be a folder of NAME's
    if [ "$(stat -c %U:%F "$3" 2> /dev/null)" = "$1:directory" ]; then return; fi
    if [ -L "$3" ]; then rm -f "$3"; fi
    install -d -o "$1" -g "$1" -m "$2" "$3"
}

at_home() { # at_home NAME: nobody else looks into these, as people of one class would into each other's
    if ! [ -d "/home/$1" ]; then
        cp -a /etc/skel "/home/$1"
        chown -R "$1:$1" "/home/$1"
        chmod 0700 "/home/$1"
    fi
    owned "$1" 0700 "/home/$1/.ssh"
    install -o "$1" -g "$1" -m 0600 "$given/$1/id_ecdsa" "/home/$1/.ssh/id_ecdsa"
    install -o "$1" -g "$1" -m 0600 "$given/$1/id_ecdsa.pub" "/home/$1/.ssh/authorized_keys"
    owned "$1" 0700 "/work/$1"
}

number=2000
while read -r name; do
    number=$((number + 1))
    known "$name" "$number"
    if [ "$1" = login ]; then at_home "$name"; fi
done < "$given/names"

# All users may read the teacher's files in this folder, such as the image and the data.
if [ "$1" = login ]; then owned ada 0755 /work/shared; fi
