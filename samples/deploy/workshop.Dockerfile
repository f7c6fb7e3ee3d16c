# The workshop: train, adapt, export. Build in the repository's root, run with the GPUs and the data:
#   docker build -f samples/deploy/workshop.Dockerfile -t ptedge-workshop .
#   docker run --rm -it --gpus all --shm-size 8g -v "$PWD/data:/data" -v "$PWD/runs:/runs" ptedge-workshop \
#       adapt /runs/source/model.pt --target /data/frames --source-free --out /runs/adapted
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install --yes --no-install-recommends ffmpeg \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /build
COPY . .
RUN pip install --no-cache-dir ".[train,export,sign,weights]" && rm -rf /build

RUN useradd --create-home --uid 1000 ptedge
USER ptedge
WORKDIR /home/ptedge
ENTRYPOINT ["ptedge"]
CMD ["doctor"]
