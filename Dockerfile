# Two images: `operator`, and `pipeline`, which also contains Spark and Java.
#
#   DOCKER_BUILDKIT=1 docker build --target operator -t kafka-rebalance-operator:dev .
#   DOCKER_BUILDKIT=1 docker build --target pipeline -t kafka-rebalance-pipeline:dev .
#
# Any Debian-based slim image of Python 3.11 or later works as base; pin it by digest for reproducible builds. If the
# package index uses a private CA: --secret id=ca_bundle,src=/etc/ssl/certs/ca-certificates.crt
# There is no HEALTHCHECK: Kubernetes probes /livez and /readyz (operator --health-port).
#
# Two builds write files with the same contents (`make release` compares them). So installed files get a fixed time,
# which their bytecode contains, and the hash seed is fixed, on which the order of sets in bytecode depends. Machine code
# has the text of its type annotation, with addresses of functions; nothing reads it, so it is empty.

ARG BASE_IMAGE=python:3.11-slim-bookworm


FROM ${BASE_IMAGE} AS requirements
WORKDIR /requirements
COPY pyproject.toml ./
# Separate lists, so that the layers with the dependencies are rebuilt only when the lists change.
RUN python -c 'import pathlib, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
lists = {"operator": project["dependencies"], "pipeline": project["optional-dependencies"]["pipeline"]}; \
[pathlib.Path(name).write_text("\n".join(lines)) for name, lines in lists.items()]'


FROM ${BASE_IMAGE} AS dependencies
# For plans by load: importing their modules writes machine code there, and it runs on any CPU of the architecture.
ENV NUMBA_CACHE_DIR=/opt/venv/machine-code NUMBA_CPU_NAME=generic
ENV FIXED_TIME=2020-01-01T00:00:00Z PYTHONHASHSEED=0
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore PIP_CACHE_DIR=/var/cache/pip
WORKDIR /src
COPY --from=requirements /requirements/operator ./operator.txt
# The environment has no pip: the pip of the base image installs into it. The asynchronous half of the Kubernetes client
# is removed because nothing imports it.
RUN --mount=type=cache,target=/var/cache/pip --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi; \
    python -m venv --without-pip /opt/venv \
    && pip --python /opt/venv/bin/python install --no-compile --requirement operator.txt \
    && rm -r /opt/venv/lib/python3*/site-packages/kubernetes/aio \
    && find /opt/venv -newermt $FIXED_TIME -exec touch --no-dereference --date=$FIXED_TIME {} +


FROM dependencies AS operator-environment
COPY LICENSE README.md pyproject.toml ./
COPY operator operator
# The tests of libraries and Arrow's network server are removed because nothing imports them.
# Importing all modules writes their bytecode, and the machine code; files that are never imported get none.
RUN --mount=type=cache,target=/var/cache/pip --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi; \
    pip --python /opt/venv/bin/python install --no-compile --no-deps . \
    && cd /opt/venv/lib/python3*/site-packages && rm -r numba/tests pandas/tests pyarrow/tests pyarrow/*flight* \
    && find /opt/venv -newermt $FIXED_TIME -exec touch --no-dereference --date=$FIXED_TIME {} + \
    && cd / && /opt/venv/bin/python -c 'from numba.core.annotations.type_annotations import TypeAnnotation; \
TypeAnnotation.__str__ = lambda _: ""; \
import pkgutil, importlib, kafka_rebalance as package; \
names = [found.name for found in pkgutil.walk_packages(package.__path__, "kafka_rebalance.")]; \
[importlib.import_module(name) for name in names if ".pipeline." not in name]'


FROM dependencies AS pipeline-environment
COPY --from=requirements /requirements/pipeline ./pipeline.txt
RUN --mount=type=cache,target=/var/cache/pip --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi; \
    pip --python /opt/venv/bin/python install --no-compile --requirement pipeline.txt
# What Spark needs for s3://. MAVEN_REPOSITORY: a mirror of Maven Central.
ARG MAVEN_REPOSITORY=
COPY operator/kafka_rebalance/pipeline/s3_jars.py operator/kafka_rebalance/pipeline/s3_jars.txt ./
RUN --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export SSL_CERT_FILE=/run/secrets/ca_bundle; fi; \
    MAVEN_REPOSITORY="$MAVEN_REPOSITORY" /opt/venv/bin/python s3_jars.py
COPY LICENSE README.md pyproject.toml ./
COPY operator operator
RUN --mount=type=cache,target=/var/cache/pip --mount=type=secret,id=ca_bundle \
    if [ -s /run/secrets/ca_bundle ]; then export PIP_CERT=/run/secrets/ca_bundle; fi; \
    pip --python /opt/venv/bin/python install --no-compile --no-deps . \
    && find /opt/venv -newermt $FIXED_TIME -exec touch --no-dereference --date=$FIXED_TIME {} + \
    && cd / && /opt/venv/bin/python -c 'from numba.core.annotations.type_annotations import TypeAnnotation; \
TypeAnnotation.__str__ = lambda _: ""; \
import pkgutil, importlib, kafka_rebalance as package; \
names = [found.name for found in pkgutil.walk_packages(package.__path__, "kafka_rebalance.")]; \
[importlib.import_module(name) for name in names]'


FROM ${BASE_IMAGE} AS runtime
# Java requires a user name; runAsNonRoot of Kubernetes requires a numeric uid.
RUN SOURCE_DATE_EPOCH=1577836800 useradd --uid 65532 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin nonroot
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/opt/venv/machine-code \
    NUMBA_CPU_NAME=generic


FROM runtime AS pipeline
# The Java package installs links into a directory that does not exist in slim images. Its truststore has the time of the
# installation.
RUN --mount=type=bind,source=operator/kafka_rebalance/pipeline/java_truststore.py,target=/java_truststore.py \
    mkdir -p /usr/share/man/man1 \
    && apt-get update -q \
    && apt-get install -q -y --no-install-recommends openjdk-17-jre-headless \
    && python /java_truststore.py /etc/ssl/certs/java/cacerts \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/ldconfig/aux-cache /var/log/*
COPY --from=pipeline-environment /opt/venv /opt/venv
# With the class archive a job needs six seconds of CPU less. It is written in this stage, because Java compares the times
# of the jars. Java writes a different one each time, so the images of a release do without.
ARG CLASS_ARCHIVE=yes
RUN if [ "$CLASS_ARCHIVE" = yes ]; then python -m kafka_rebalance.pipeline.class_archive; fi
USER 65532:65532
# Spark writes to its working directory, and its launcher is a shell script.
WORKDIR /tmp
ENTRYPOINT ["/opt/venv/bin/kafka-rebalance"]
CMD ["pipeline", "--help"]
# Last, so that a new revision does not invalidate other layers.
ARG BASE_IMAGE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kafka-rebalance-pipeline" \
      org.opencontainers.image.description="Samples of Kafka clusters, and load models from them" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"


FROM runtime AS operator
COPY --from=operator-environment /opt/venv /opt/venv
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/opt/venv/bin/kafka-rebalance"]
CMD ["operator", "--help"]
# Last, so that a new revision does not invalidate other layers.
ARG BASE_IMAGE
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="kafka-rebalance-operator" \
      org.opencontainers.image.description="Moves Kafka partition replicas: fewest moves, small steps, throttled, undoable" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"
