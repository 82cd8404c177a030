# The command `bench` on a CPU: docker build -t fedarena . && docker run --rm fedarena run --defense dbcl --attack dlg
FROM python:3.12-slim

# The CPU build of torch: the default one brings gigabytes of CUDA libraries along.
RUN pip install --no-cache-dir torch==2.13.0 torchvision==0.28.0 --index-url https://download.pytorch.org/whl/cpu

WORKDIR /opt/fedarena
COPY pyproject.toml setup.py README.md LICENSE constraints.txt ./
COPY bench bench
COPY attacks attacks
COPY defenses defenses
COPY datasets datasets
# The commit, which `--version` and records name: docker build --build-arg COMMIT="$(git describe --always --dirty)" …
ARG COMMIT=""
RUN echo "$COMMIT" >bench/commit.txt && pip install --no-cache-dir -c constraints.txt . && useradd --create-home --uid 1000 fedarena

# Records and pictures go to runs/ in here: docker run --rm -v "$PWD:/work" …
WORKDIR /work
RUN chown 1000 /work
USER 1000
ENTRYPOINT ["bench"]
CMD ["--help"]
