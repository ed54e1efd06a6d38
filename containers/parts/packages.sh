#!/bin/sh
# Install the Debian packages that lie in the folder $1: these files, no others, and no network.
set -eu
export DEBIAN_FRONTEND=noninteractive
for part in doc man info locale lintian bug; do echo "path-exclude=/usr/share/$part/*"; done > /etc/dpkg/dpkg.cfg.d/zz-toolkit
# Whoever passes an image on has to be able to show the copyright files.
echo 'path-include=/usr/share/doc/*/copyright' >> /etc/dpkg/dpkg.cfg.d/zz-toolkit
if ls "$1"/*.deb > /dev/null 2>&1; then
    apt-get install -qq --yes --no-install-recommends --allow-downgrades \
        -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root \
        -o Dpkg::Options::=--force-unsafe-io "$1"/*.deb
fi
