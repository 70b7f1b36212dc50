"""PyTorch's side of bench/resnet.py: torchvision's ResNet trunk, written out here because Debian has
no torchvision. encode: eval mode without gradients; train: forward, backward of the mean square of
the pooled features and SGD with momentum 0.9. Prints JSON as time_resnet does.
"""
import argparse
import json
import resource
import time

import torch
from torch import nn

LAYERS = {"resnet18": ([2, 2, 2, 2], 1), "resnet34": ([3, 4, 6, 3], 1),
          "resnet50": ([3, 4, 6, 3], 4), "resnet101": ([3, 4, 23, 3], 4),
          "resnet152": ([3, 8, 36, 3], 4)}


def conv(i, o, k, s=1):
    return nn.Conv2d(i, o, k, stride=s, padding=k // 2, bias=False)


class Block(nn.Module):
    def __init__(self, i, width, stride, expansion):
        super().__init__()
        o = width * expansion
        shapes = ([(i, width, 3, stride), (width, width, 3, 1)] if expansion == 1 else
                  [(i, width, 1, 1), (width, width, 3, stride), (width, o, 1, 1)])
        self.convs = nn.ModuleList(conv(*s) for s in shapes)
        self.norms = nn.ModuleList(nn.BatchNorm2d(s[1]) for s in shapes)
        self.relu = nn.ReLU(inplace=True)
        self.down = nn.Sequential(conv(i, o, 1, stride),
                                  nn.BatchNorm2d(o)) if stride != 1 or i != o else None

    def forward(self, x):
        y, n = x, len(self.convs)
        for k in range(n):
            y = self.norms[k](self.convs[k](y))
            if k + 1 < n:
                y = self.relu(y)
        y += x if self.down is None else self.down(x)
        return self.relu(y)


class Trunk(nn.Module):
    def __init__(self, layers, expansion):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, i = [], 64
        for s, n in enumerate(layers):
            for k in range(n):
                blocks.append(Block(i, 64 << s, 2 if s and not k else 1, expansion))
                i = (64 << s) * expansion
        self.blocks = nn.Sequential(*blocks)

    def forward(self, x):
        return self.blocks(self.stem(x)).mean((2, 3))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["encode", "train"])
    p.add_argument("model", choices=sorted(LAYERS))
    for name, default in (("batch", 8), ("size", 224), ("repeats", 3), ("threads", 1)):
        p.add_argument("--" + name, type=int, default=default)
    p.add_argument("--seconds", type=float, default=2.0)
    p.add_argument("--layout", choices=["default", "channels_last"], default="default")
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    memory = torch.channels_last if a.layout == "channels_last" else torch.contiguous_format
    trunk = Trunk(*LAYERS[a.model]).to(memory_format=memory)
    x = torch.randn(a.batch, 3, a.size, a.size).contiguous(memory_format=memory)
    trunk.train(a.what == "train")
    sgd = torch.optim.SGD(trunk.parameters(), lr=1e-4, momentum=0.9)

    def step():
        if a.what == "encode":
            with torch.no_grad():
                return trunk(x)
        sgd.zero_grad(set_to_none=True)
        trunk(x).square().mean().backward()
        return sgd.step()

    for _ in range(3):
        step()
    seconds = []
    for _ in range(a.repeats):
        start, n = time.perf_counter(), 0
        while n == 0 or time.perf_counter() - start < a.seconds / a.repeats:
            step()
            n += 1
        seconds.append((time.perf_counter() - start) / n)
    seconds.sort()
    print(json.dumps({"median_s": seconds[len(seconds) // 2], "best_s": seconds[0],
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                      "torch": torch.__version__, "mkldnn": torch.backends.mkldnn.is_available()}))


if __name__ == "__main__":
    main()
