# tf2.15-cpu: TensorFlow 2.15 with Horovod over MPI and Gloo, for processors
# Written by toolkit 0.1.0. Both the classic builder and BuildKit take it.

FROM debian:bookworm-slim AS build
LABEL toolkit="build"
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 python3-venv python3-dev g++ make cmake pkg-config libopenmpi-dev openmpi-bin \
    && rm -rf /var/lib/apt/lists/*
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_PROGRESS_BAR=off PIP_ROOT_USER_ACTION=ignore \
    PATH=/opt/toolkit/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
RUN python3 -m venv /opt/toolkit/venv
# Built against the image's own MPI. Its one large C file takes minutes and gigabytes at -O2 -g, for calls that
# only pass arguments on.
RUN CFLAGS="-O1 -g0" MPICC=mpicc pip install --no-binary mpi4py mpi4py==4.1.1 \
    && find /opt/toolkit/venv -path '*/mpi4py/*.so' -exec strip --strip-unneeded {} +
# The wheel for processors: a third of the size of the one that can also use GPUs.
RUN pip install tensorflow-cpu==2.15.1
# Horovod asks TensorFlow how it was compiled, so it must see it while it builds: no build isolation.
ARG JOBS=2
RUN pip install cffi packaging 'setuptools<81' wheel \
    && MAKEFLAGS="-j$JOBS" \
    HOROVOD_WITH_MPI=1 \
    HOROVOD_WITH_GLOO=1 \
    HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 \
    pip install --no-build-isolation horovod==0.28.1 \
    && find /opt/toolkit/venv -path '*/horovod/*.so' -exec strip --strip-unneeded {} +
# What was only needed to build, or to install more, goes; the rest of the image is all that jobs need.
RUN set -eu; \
    site=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'); \
    echo /opt/toolkit/lib > "$site/toolkit.pth"; \
    rm -rf "$site/tensorflow/include"; \
    pip uninstall -q -y wheel pip

FROM debian:bookworm-slim
LABEL toolkit="image"
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3 openmpi-bin libopenmpi3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/apt /var/log/dpkg.log
ENV PATH=/opt/toolkit/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8
COPY --from=build /opt/toolkit/venv /opt/toolkit/venv

# The image says what is in it, as read from it.
COPY stack.py /tmp/stack.py
RUN python /tmp/stack.py --recipe tf2.15-cpu --base debian:bookworm-slim --toolkit 0.1.0 \
        --output /opt/toolkit/stack.json \
    && rm /tmp/stack.py

# Trainers change most often, so they come last.
COPY lib/ /opt/toolkit/lib/
RUN python -m compileall -q /opt/toolkit/lib
