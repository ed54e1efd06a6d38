#!/bin/bash
# Start the services of one node, and exit if a service ends. The container's log has the services' output.
# usage: node.sh login|compute
set -euo pipefail
role=$1

stop() { # end the services and exit, so that the container ends
    trap - TERM INT
    # shellcheck disable=SC2046 # each process number is a separate word
    kill $(jobs -p) 2> /dev/null || true
    wait
    exit "${1:-0}"
}
trap stop TERM INT

wait_for() { # wait_for TEST PATH: wait up to 10 s until a service has created PATH
    for _ in {1..200}; do
        if test "$1" "$2"; then return; fi
        sleep 0.05
    done
    echo "node: $2 did not appear within 10 s" >&2
    stop 1
}

make_home() { # create ada's folders on the shared volumes, and the keys with which ada logs in to other nodes
    install -d -m 1777 /work
    install -d -o ada -g ada -m 0755 /work/ada
    [ -d /home/ada ] || { cp -a /etc/skel /home/ada && chown -R ada:ada /home/ada; }
    install -d -o ada -g ada -m 0700 /home/ada/.ssh
    install -o ada -g ada -m 0600 /etc/toolkit/id_ecdsa /home/ada/.ssh/id_ecdsa
    install -o ada -g ada -m 0600 /etc/toolkit/id_ecdsa.pub /home/ada/.ssh/authorized_keys
}

chmod 0666 /dev/fuse # as udev sets it, because ordinary users mount SIF files; Docker gives a stricter mode
install -d -o munge -g munge -m 0755 /run/munge
install -o munge -g munge -m 0400 /etc/toolkit/munge.key /etc/munge/munge.key
rm -f /run/munge/* # a killed container leaves its socket
setpriv --reuid munge --regid munge --init-groups munged --foreground &
install -d -m 0755 /run/sshd
install -m 0600 /etc/toolkit/ssh_host_ecdsa_key /etc/ssh/ssh_host_ecdsa_key
[ "$role" != login ] || make_home
# All users connect from one address, so a broken connection of one user must not lock out the others.
# OpenSSH before 9.8 has no penalties and no option for them.
if /usr/sbin/sshd -t -o PerSourcePenalties=no 2>/dev/null; then
    /usr/sbin/sshd -D -e -o PerSourcePenalties=no &
else
    /usr/sbin/sshd -D -e &
fi
wait_for -S /run/munge/munge.socket.2

start_slurm() {
    if [ "$role" = login ]; then
        install -d -o slurm -g slurm -m 0700 /var/lib/slurm/slurmctld
        slurmctld -D &
    else
        install -d -m 0755 /var/lib/slurm/slurmd
        slurmd -D -N "$(hostname)" &
    fi
    slurm=$!
}

# shellcheck disable=SC2317
restart_slurm() { # as `systemctl restart` does on other machines; `kill -USR1 1` calls it
    restarted=yes
    kill "$slurm" 2> /dev/null || true
    wait "$slurm" || true
    start_slurm
}
trap restart_slurm USR1

start_slurm
restarted=yes
while [ -n "$restarted" ]; do # a signal also ends `wait`
    restarted=
    wait -n || true
done
echo "node: a service exited, so the node stops" >&2
stop 1
