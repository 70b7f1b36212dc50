"""The peer of decode.py: Pillow, then torchvision's arithmetic in torch, one thread.

  pillow_decode.py make PICTURE              writes a 640x480 JPEG
  pillow_decode.py time PICTURE N SIZE OUT   prints seconds as JSON, writes (3, SIZE, SIZE) f32

torchvision is not packaged for Debian 12; `prepare` does what its Resize(SIZE, bicubic),
CenterCrop(SIZE), convert("RGB"), ToTensor and Normalize do on a Pillow picture, call by call, and
without their checks of arguments, which only makes the peer faster.
"""
import io
import json
import sys
import time

import numpy as np
import torch
from PIL import Image

MEAN = torch.tensor([0.48145466, 0.4578275, 0.40821073]).view(3, 1, 1)
STD = torch.tensor([0.26862954, 0.26130258, 0.27577711]).view(3, 1, 1)


def make(path):
    """Noise of all sizes, as a photograph has detail of all sizes: about 40 kB at quality 90."""
    random = np.random.RandomState(1)
    picture = np.zeros((480, 640, 3))
    for k in range(1, 8):
        rough = random.rand(480 // 2 ** k + 2, 640 // 2 ** k + 2, 3) * 255
        layer = Image.fromarray(rough.astype(np.uint8)).resize((640, 480), Image.BICUBIC)
        picture += (np.asarray(layer) - 127.5) * 2.0 ** (k - 8)
    picture = 127.5 + picture * (55 / picture.std())
    Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).save(path, "JPEG", quality=90)


def prepare(data, size):
    picture = Image.open(io.BytesIO(data))
    w, h = picture.size
    short, long = min(w, h), max(w, h)
    new_short, new_long = size, int(size * long / short)
    new_w, new_h = (new_short, new_long) if w <= h else (new_long, new_short)
    picture = picture.resize((new_w, new_h), Image.BICUBIC)
    top, left = int(round((new_h - size) / 2.0)), int(round((new_w - size) / 2.0))
    picture = picture.crop((left, top, left + size, top + size)).convert("RGB")
    tensor = torch.from_numpy(np.array(picture, np.uint8, copy=True))
    tensor = tensor.view(size, size, 3).permute((2, 0, 1)).contiguous()
    tensor = tensor.to(dtype=torch.float32).div(255)
    return tensor.clone().sub_(MEAN).div_(STD)


def measure(path, n, size, out):
    torch.set_num_threads(1)
    with open(path, "rb") as f:
        data = f.read()
    for _ in range(10):
        prepare(data, size)
    start = time.perf_counter()
    for _ in range(n):
        tensor = prepare(data, size)
    seconds = time.perf_counter() - start
    tensor.numpy().tofile(out)
    print(json.dumps({"seconds": seconds, "n": n}))


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
