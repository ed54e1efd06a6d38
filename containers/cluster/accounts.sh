#!/bin/sh
# Create the accounts of a class on this node. On the login node, also create the users' folders on the shared volumes.
# usage: accounts.sh HOST. /etc/toolkit/accounts has the users' names and, on the login node, their keys. The script
# may run again.
set -eu
given=/etc/toolkit/accounts

known() { # known NAME NUMBER: create a user without a password; the number is the same on every node
    id -u "$1" > /dev/null 2>&1 ||
        useradd --uid "$2" --user-group --no-create-home --shell /bin/bash --password '*' "$1"
}

owned() { # owned NAME MODE FOLDER: create a folder of NAME; remove a link, which another user may have made in /work
    if [ "$(stat -c %U:%F "$3" 2> /dev/null)" = "$1:directory" ]; then return; fi
    if [ -L "$3" ]; then rm -f "$3"; fi
    install -d -o "$1" -g "$1" -m "$2" "$3"
}

at_home() { # at_home NAME: create the home and work folders, which no other user can read
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
