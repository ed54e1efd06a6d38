#!/bin/sh
# Put the Python packages and what was compiled into the image, say what is in it, and make it slim. The words of the
# call are the compiled packages of Python: name==version. RECIPE, BASE, TOOLKIT: what stack.json is to say.
set -eu
venv=/opt/toolkit/venv
export PATH="$venv/bin:/opt/mpi/bin:$PATH" PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 LC_ALL=C.UTF-8 TZ=UTC
for tree in /build/compiled/*.tar; do
    if [ -f "$tree" ]; then tar -xf "$tree" -C /; fi
done
# Open MPI 4 starts not even one process where it finds neither ssh nor rsh, which nothing in an image needs.
if [ -x /opt/mpi/bin/ompi_info ]; then
    mkdir -p /opt/mpi/etc && echo 'plm_rsh_agent = ssh : rsh : false' >> /opt/mpi/etc/openmpi-mca-params.conf
fi
if [ -d /opt/mpi/lib ]; then echo /opt/mpi/lib > /etc/ld.so.conf.d/toolkit.conf && ldconfig; fi
sh /build/parts/python.sh /build/requirements/image.txt
if [ $# -gt 0 ]; then
    python "$(ls /build/tools/pip-*.whl)/pip" install --quiet --no-index --no-deps --no-compile --no-cache-dir \
        --root-user-action=ignore --disable-pip-version-check --find-links /build/compiled "$@"
fi
site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo /opt/toolkit/lib > "$site/toolkit.pth"
sh /build/parts/slim.sh "$site"
python /build/parts/stack.py --recipe "$RECIPE" --base "$BASE" --toolkit "$TOOLKIT" --output /opt/toolkit/stack.json
python /build/parts/bytecode.py
sh /build/parts/clean.sh
