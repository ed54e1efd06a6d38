# An image with mmdebstrap. In its container, toolkit unpacks the packages of a lock and runs the packages' scripts.
# The classic builder and BuildKit both build it: no heredoc, no RUN --mount, no COPY --chmod.
ARG BASE=toolkit-base:bookworm
FROM ${BASE}
LABEL toolkit="builder" \
      org.opencontainers.image.title="toolkit bootstrap" \
      org.opencontainers.image.description="mmdebstrap, to make base images from locked packages"
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update && apt-get install -y --no-install-recommends mmdebstrap && rm -rf /var/lib/apt/lists/* \
    && mmdebstrap --version
