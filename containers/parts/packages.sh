#!/bin/sh
# Install the Debian packages in the folder $1, without other packages and without a network.
set -eu
export DEBIAN_FRONTEND=noninteractive
for part in doc man info locale lintian bug; do echo "path-exclude=/usr/share/$part/*"; done > /etc/dpkg/dpkg.cfg.d/zz-toolkit
# An image that is passed on must contain the copyright files.
echo 'path-include=/usr/share/doc/*/copyright' >> /etc/dpkg/dpkg.cfg.d/zz-toolkit
if ls "$1"/*.deb > /dev/null 2>&1; then
    apt-get install -qq --yes --no-install-recommends --allow-downgrades \
        -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root \
        -o Dpkg::Options::=--force-unsafe-io "$1"/*.deb
fi
