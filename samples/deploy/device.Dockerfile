# The device: run a bundle. BASE is the vendor's image for the JetPack on the device (docs/jetson.md); without a GPU, take
# python:3.12-slim. TensorRT and CUDA come with the base, so its own Python is used.
#   docker build -f samples/deploy/device.Dockerfile --build-arg BASE=nvcr.io/nvidia/l4t-tensorrt:r10.3.0-devel -t ptedge .
#   docker run --rm --runtime nvidia -v "$PWD/bundle:/bundle" ptedge build /bundle
ARG BASE=nvcr.io/nvidia/l4t-tensorrt:r10.3.0-devel
FROM ${BASE}

RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3-venv python3-dev g++ \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /build
COPY . .
ENV PATH=/opt/ptedge/bin:/usr/local/cuda/bin:$PATH
# pycuda is compiled against the base's CUDA; where there is none, ONNX Runtime on the CPU remains
RUN python3 -m venv --system-site-packages /opt/ptedge \
    && pip install --no-cache-dir . \
    && (command -v nvcc > /dev/null && pip install --no-cache-dir pycuda || echo "no CUDA in this base: no TensorRT") \
    && rm -rf /build

RUN useradd --create-home --uid 1001 --groups video ptedge
USER ptedge
WORKDIR /home/ptedge
ENTRYPOINT ["ptedge"]
CMD ["doctor"]
