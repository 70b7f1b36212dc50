"""Makes the cases of family pcme in which a ResNet trunk is trained: one step's results, gradients of
all weights and the running buffers afterwards.

Written from the papers with torch's own modules (nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d) in float64,
and sharing nothing with the C code. Needs torch; run once, the cases are kept in the repository:

    python3 tests/golden/make_resnets.py tests/golden/pcme
"""
import json
import os
import sys

import torch
from torch import nn

from make_variants import save


def conv(i, o, k, s=1):
    return nn.Conv2d(i, o, k, stride=s, padding=k // 2, bias=False)


class Block(nn.Module):
    def __init__(self, i, width, stride, bottleneck):
        super().__init__()
        o = 4 * width if bottleneck else width
        shapes = ([(i, width, 1, 1), (width, width, 3, stride), (width, o, 1, 1)] if bottleneck else
                  [(i, width, 3, stride), (width, width, 3, 1)])
        self.n = len(shapes)
        for k, s in enumerate(shapes):
            setattr(self, "conv%d" % (k + 1), conv(*s))
            setattr(self, "bn%d" % (k + 1), nn.BatchNorm2d(s[1]))
        self.downsample = (nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o))
                           if stride != 1 or i != o else None)

    def forward(self, x):
        y = x
        for k in range(1, self.n + 1):
            y = getattr(self, "bn%d" % k)(getattr(self, "conv%d" % k)(y))
            y = y.relu() if k < self.n else y
        return (y + (x if self.downsample is None else self.downsample(x))).relu()


class Trunk(nn.Module):
    def __init__(self, base, layers, bottleneck):
        super().__init__()
        self.conv1, self.bn1, self.pool = conv(3, base, 7, 2), nn.BatchNorm2d(base), nn.MaxPool2d(3, 2, 1)
        i = base
        for s, n in enumerate(layers):
            blocks = []
            for k in range(n):
                blocks.append(Block(i, base << s, 2 if s and not k else 1, bottleneck))
                i = (base << s) * (4 if bottleneck else 1)
            setattr(self, "layer%d" % (s + 1), nn.Sequential(*blocks))

    def forward(self, x):
        x = self.pool(self.bn1(self.conv1(x)).relu())
        return self.layer4(self.layer3(self.layer2(self.layer1(x))))


def case(root, name, layers, bottleneck, size):
    torch.manual_seed(3)
    trunk = Trunk(2, layers, bottleneck).double().train()
    for m in trunk.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.weight.data.uniform_(0.5, 1.5)
            m.bias.data.normal_(std=0.3)
            m.running_mean.normal_()
            m.running_var.uniform_(0.5, 2)
    tensors = {"param." + k: v.clone() for k, v in trunk.state_dict().items()}
    roles = {k: "param" for k in tensors}

    def add(key, value, role):
        tensors[key], roles[key] = value.detach().clone(), role

    pixels = torch.randn(3, 3, *size, dtype=torch.float64)
    features = trunk(pixels)
    pooled = features.mean((2, 3))
    cot_features, cot_pooled = torch.randn_like(features), torch.randn_like(pooled)
    ((features * cot_features).sum() + (pooled * cot_pooled).sum()).backward()
    for key, value in (("pixels", pixels), ("cot_features", cot_features), ("cot_pooled", cot_pooled)):
        add(key, value, "input")
    add("features", features, "output")
    add("pooled", pooled, "output")
    for key, p in trunk.named_parameters():
        add("grad." + key, p.grad, "grad")
    for key, b in trunk.named_buffers():
        if "running" in key:
            add("after." + key, b, "output")
    folder = os.path.join(root, name)
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "tensors.safetensors"), tensors)
    record = {
        "family": "pcme", "name": name, "variant": "own", "seed": 3,
        "what": "narrow %s ResNet in training mode: one step" % ("bottleneck" if bottleneck else "basic"),
        "reference": {"repo": "torch", "commit": None, "file": "tests/golden/make_resnets.py",
                      "function": "Trunk"},
        "runtime": {"torch": torch.__version__},
        "hyperparameters": {"base": 2, "layers": layers, "input": list(size)},
        "tolerance": {"default": {"abs": 1e-9, "rel": 1e-8},
                      "grad.*": {"abs": 1e-9, "rel": 1e-7, "scale": "max"}},
        "notes": ["gradients: of sum(features*cot_features) + sum(pooled*cot_pooled).",
                  "after.*: running buffers behind the step, momentum 0.1, unbiased variance."],
        "tensors": {k: {"dtype": "I64" if tensors[k].dtype == torch.int64 else "F64",
                        "shape": list(tensors[k].shape), "role": roles[k], "meaning": ""}
                    for k in tensors},
    }
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as f:
        json.dump(record, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    case(sys.argv[1], "resnet_train_bottleneck", [1, 2, 1, 1], True, (64, 40))
    case(sys.argv[1], "resnet_train_basic", [2, 1, 1, 1], False, (48, 64))
