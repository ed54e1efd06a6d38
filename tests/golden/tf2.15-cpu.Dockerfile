# tf2.15-cpu: TensorFlow 2.15 with Horovod over MPI and Gloo, for processors
# Written by toolkit 0.3.0. Both the classic builder and BuildKit take it; no step needs a network.

FROM scratch AS base
ADD base.tar /
LABEL toolkit="build"

FROM base AS toolchain
COPY parts/packages.sh /build/parts/packages.sh
COPY toolchain/ /build/toolchain/
RUN timeout 5400 sh /build/parts/packages.sh /build/toolchain

FROM toolchain AS mpi4py
ARG JOBS=2
COPY parts/compile.sh parts/python.sh parts/mpi4py.sh /build/parts/
COPY sources/mpi4py-4.1.1.tar.gz /build/sources/
COPY tools/ /build/tools/
COPY requirements/mpi4py.txt /build/requirements/
RUN JOBS=$JOBS timeout 5400 sh /build/parts/compile.sh mpi4py mpi4py-4.1.1.tar.gz

FROM toolchain AS horovod
ARG JOBS=2
COPY parts/compile.sh parts/python.sh parts/horovod.sh /build/parts/
COPY sources/horovod-0.28.1.tar.gz /build/sources/
COPY tools/ /build/tools/
COPY wheels/ /build/wheels/
COPY requirements/horovod.txt /build/requirements/
RUN JOBS=$JOBS timeout 5400 sh /build/parts/compile.sh horovod horovod-0.28.1.tar.gz mpi gloo

FROM base AS stack
COPY parts/packages.sh /build/parts/packages.sh
COPY packages/ /build/packages/
RUN timeout 5400 sh /build/parts/packages.sh /build/packages
COPY parts/ /build/parts/
COPY strip/ /build/strip/
COPY tools/ /build/tools/
COPY wheels/ /build/wheels/
COPY requirements/image.txt /build/requirements/
COPY --from=mpi4py /build/compiled/ /build/compiled/
COPY --from=horovod /build/compiled/ /build/compiled/
RUN RECIPE=tf2.15-cpu BASE='toolkit-base:bookworm-49a026e9971c (bootstrapped from 88 locked packages)' TOOLKIT=0.3.0 timeout 5400 sh /build/parts/stack.sh mpi4py==4.1.1 horovod==0.28.1

# One layer: what only served to build is in none.
FROM scratch
COPY --from=stack / /
ENV PATH="/opt/toolkit/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
    LANG="C.UTF-8"
LABEL toolkit="image"
CMD ["/bin/sh"]

# Trainers change most often, so they come last.
COPY papers/ /opt/toolkit/
COPY lib/ /opt/toolkit/lib/
RUN python -B -m compileall -q --invalidation-mode unchecked-hash /opt/toolkit/lib && python -B /opt/toolkit/manifest.py
