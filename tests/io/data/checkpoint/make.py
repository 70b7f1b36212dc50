"""Writes the files beside it: python3 make.py, with PyTorch 1.13 and numpy (Debian's python3-torch).

Each NAME.safetensors holds what the .pt and .bin files of the same beginning must give.
"""
import argparse
import collections
import json
import struct
import zipfile

import numpy as np
import torch

NAMES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16",
         torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
         torch.uint8: "U8", torch.bool: "BOOL"}


def raw(t):
    t = t.detach().contiguous()
    return bytes(t.view(torch.int16).numpy().tobytes() if t.dtype == torch.bfloat16
                 else t.numpy().tobytes())


def write_safetensors(path, entries):
    header, data = {}, b""
    for name, (dtype, shape, content) in entries.items():
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def twin(path, tensors):
    write_safetensors(path, {k: (NAMES[t.dtype], t.shape, raw(t)) for k, t in tensors.items()})


def both(name, content):
    torch.save(content, name + "_zip.pt")
    torch.save(content, name + "_legacy.pt", _use_new_zipfile_serialization=False)


def rezip(source, target, method, zip64=False):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", method) as new:
        for i in old.infolist():
            info = zipfile.ZipInfo(i.filename)
            info.compress_type = method
            with new.open(info, "w", force_zip64=zip64) as f:
                f.write(old.read(i))


def dtypes():
    torch.manual_seed(1)
    out = collections.OrderedDict()
    for i, dtype in enumerate(NAMES):
        shape = [(3, 4), (2, 3, 2), (5,), (7,)][i % 4]
        out["w." + NAMES[dtype].lower()] = (torch.randn(shape) * 50).to(dtype)
    out["scalar"] = torch.tensor(2.5)
    out["empty"] = torch.zeros(3, 0, 2)
    out["special"] = torch.tensor([float("nan"), float("inf"), -0.0, 1e-42])
    both("dtypes", out)
    twin("dtypes.safetensors", out)
    rezip("dtypes_zip.pt", "dtypes_deflated.pt", zipfile.ZIP_DEFLATED)
    rezip("dtypes_zip.pt", "dtypes_zip64.pt", zipfile.ZIP_STORED, True)
    for protocol in (1, 3, 4, 5):
        torch.save(out, f"dtypes_protocol{protocol}.pt", pickle_protocol=protocol)


def strided():
    base = torch.arange(60.0)
    out = {"t": base.view(6, 10).t(), "slice": base.view(6, 10)[1:5:2, 3:9:3],
           "offset": base[7:19].view(3, 4), "whole": base, "again": base.view(60),
           "one": base[4:5].expand(1, 1), "wide": torch.ones(1).expand(4, 3),
           "cube": base.view(3, 4, 5).permute(2, 0, 1), "column": base.view(6, 10)[:, 2],
           "p": torch.nn.Parameter(base.view(10, 6).t()[2:4].clone())}
    both("strided", out)
    twin("strided.safetensors", out)
    torch.save(out, "strided_legacy1.pt", pickle_protocol=1,
               _use_new_zipfile_serialization=False)


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.sizes = [3, 2]

    def forward(self, x):
        return self.norm(self.linear(x))


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.scale = torch.nn.Parameter(torch.ones(2).half())
        self.factor = 2.5

    def forward(self, x):
        return self.inner(x) * self.factor


def training():
    torch.manual_seed(2)
    net = Outer()
    bare = net.state_dict()
    wrapped = collections.OrderedDict(("module." + k, v) for k, v in bare.items())
    wrapped._metadata = bare._metadata
    adam = torch.optim.Adam(net.parameters())
    net(torch.randn(4, 3)).sum().backward()
    adam.step()
    content = {"epoch": 7, "name": "run-\u00e9", "state_dict": wrapped, "optimizer": adam.state_dict(),
               "args": argparse.Namespace(lr=1e-3, layers=(1, 2)), "best": np.float64(0.25),
               "best_f": np.float32(0.5), "n": np.int64(-3), "big": 1 << 80, "small": -(1 << 40),
               "done": False, "none": None, "tags": {"a", "b"}, "blob": b"\x00\xff", "list": [1, 2.5],
               "size": torch.Size([2, 3]), "device": torch.device("cpu"), "dtype": torch.float16,
               "defaults": {1: torch.ones(2)}}
    both("training", content)
    twin("training.safetensors", bare)
    both("nested", {"model": {"a": {"b": torch.arange(3), "c": {"d": torch.ones(2, 2)}}},
                    "criterion": {"shift": torch.zeros(1)}, "epoch": 3})
    twin("nested.safetensors", {"a.b": torch.arange(3), "a.c.d": torch.ones(2, 2)})
    torch.jit.script(net).save("training_script.pt")
    twin("training_script.safetensors", net.state_dict())
    keys = list(bare)
    parts = {"training-00001-of-00002.bin": keys[:3], "training-00002-of-00002.bin": keys[3:]}
    for name, some in parts.items():
        torch.save({k: bare[k] for k in some}, name)
    with open("training.bin.index.json", "w") as f:
        json.dump({"weight_map": {k: n for n, some in parts.items() for k in some}},
                  f, indent=1)


def unsigned():
    """What PyTorch 2.3 writes for dtypes that 1.13 does not have (torch/_tensor.py)."""
    def text(s):
        return b"X" + struct.pack("<I", len(s)) + s.encode()

    pickle, members, entries = b"\x80\x02}(", {}, {}
    for i, (dtype, code) in enumerate((("uint16", "H"), ("uint32", "I"), ("uint64", "Q"))):
        content = struct.pack("<6" + code, *range(250, 256))
        members[str(i)] = content
        entries[dtype] = (dtype.replace("uint", "U"), (2, 3), content)
        pickle += text(dtype) + b"ctorch._utils\n_rebuild_tensor_v3\n((" + text("storage")
        pickle += b"ctorch.storage\nUntypedStorage\n" + text(str(i)) + text("cpu")
        pickle += b"K" + bytes([len(content)]) + b"tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89"
        pickle += b"ccollections\nOrderedDict\n)Rctorch\n" + dtype.encode() + b"\ntR"
    with zipfile.ZipFile("unsigned_zip.pt", "w") as z:
        for name, content in (("data.pkl", pickle + b"u."), ("byteorder", b"little"),
                              *(("data/" + k, v) for k, v in members.items())):
            z.writestr(zipfile.ZipInfo("archive/" + name), content)
    write_safetensors("unsigned.safetensors", entries)


class Shell:
    def __reduce__(self):
        import os
        return os.system, ("touch /tmp/penumbra-was-here",)


dtypes()
strided()
training()
unsigned()
torch.save({"state_dict": {"w": torch.ones(2), "x": Shell()}}, "shell_zip.pt")
torch.save({"state_dict": {"w": torch.ones(2), "x": Shell()}}, "shell_legacy.pt",
           _use_new_zipfile_serialization=False)
