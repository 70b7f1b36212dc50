#!/usr/bin/python3 -B
"""PCME's captions, or its image head on a given feature map, forward and backward in PyTorch eager:
torch.nn.GRU on packed sequences and the heads of Chun et al. 2021, section 3.2.1.

    torch_gru.py captions|head [--batch 128] [--words 20] [--spread 1] [--seconds 3] [--repeats 5]
                 [--threads 2]

Weights, ids and cotangents are those of bench/time_text_tower.c. Prints JSON: median_s, min_s, cpu_s
(of all threads, median), peak_rss_mb, loss and the squares of all gradients, and the libraries that
were loaded. Captions lie sorted by falling length, as pack_padded_sequence wants them; sorting is
outside the time.
"""
import argparse
import json
import statistics
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from torch_bench import loaded_libraries, peak_rss_mb

VOCAB, WORD_DIM, DIM, IMAGE_DIM, SIDE = 11755, 300, 1024, 2048, 7


def numbers(which, shape, scale=1.0):
    i = np.arange(int(np.prod(shape)), dtype=np.uint32)
    with np.errstate(over="ignore"):
        bits = (i + np.uint32(1)) * np.uint32(2654435761) + np.uint32(which * 40503)
        bits ^= bits >> np.uint32(15)
        bits *= np.uint32(2246822519)
        bits ^= bits >> np.uint32(13)
    values = (bits >> np.uint32(8)).astype(np.float32) / np.float32(8388608) - np.float32(1)
    return torch.from_numpy(np.float32(scale) * values).reshape(shape)


class Attention(nn.Module):
    """softmax over positions of w2 tanh(w1 x), and what it pools."""

    def __init__(self, width):
        super().__init__()
        self.w_1 = nn.Linear(width, width // 2, bias=False)
        self.w_2 = nn.Linear(width // 2, 1, bias=False)

    def forward(self, x, mask):
        scores = self.w_2(torch.tanh(self.w_1(x)))
        if mask is not None:
            scores = scores.masked_fill(mask[:, :, None], -torch.inf)
        return torch.bmm(scores.softmax(1).transpose(1, 2), x)[:, 0]


class Pie(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention, self.fc = Attention(width), nn.Linear(width, DIM)
        self.layer_norm = nn.LayerNorm(DIM)

    def forward(self, base, x, mask):
        return F.normalize(self.layer_norm(base + torch.sigmoid(self.fc(self.attention(x, mask)))))


class Captions(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WORD_DIM)
        self.rnn = nn.GRU(WORD_DIM, DIM // 2, bidirectional=True, batch_first=True)
        self.pie = Pie(WORD_DIM)
        self.attention, self.fc = Attention(WORD_DIM), nn.Linear(WORD_DIM, DIM)
        self.log_std_rnn = nn.GRU(WORD_DIM, DIM // 2, bidirectional=True, batch_first=True)
        self.embed.weight.requires_grad = False

    @staticmethod
    def last(rnn, x, lengths):
        packed, _ = rnn(pack_padded_sequence(x, lengths, batch_first=True))
        padded, _ = pad_packed_sequence(packed, batch_first=True)
        return padded[torch.arange(len(lengths)), lengths - 1]

    def forward(self, inputs):
        ids, lengths = inputs
        x, mask = self.embed(ids), torch.arange(ids.shape[1])[None] >= lengths[:, None]
        mean = self.pie(self.last(self.rnn, x, lengths), x, mask)
        side = self.last(self.log_std_rnn, x, lengths)
        return mean, self.fc(self.attention(x, mask)) + side


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.base, self.pie = nn.Linear(IMAGE_DIM, DIM), Pie(IMAGE_DIM)
        self.attention, self.fc = Attention(IMAGE_DIM), nn.Linear(IMAGE_DIM, DIM)
        self.fc2 = nn.Linear(IMAGE_DIM, DIM)

    def forward(self, features):
        pooled = features.mean((2, 3))
        x = features.flatten(2).transpose(1, 2)
        mean = self.pie(self.base(pooled), x, None)
        return mean, self.fc(self.attention(x, None)) + self.fc2(pooled)


def captions(o):
    """ids (B,T) and lengths (B), by falling length; which row of ours each one is."""
    i = np.arange(o.batch * o.words).reshape(o.batch, o.words)
    lengths = o.words - np.arange(o.batch) % o.spread
    ids = np.where(np.arange(o.words)[None] < lengths[:, None], 1 + (i * 7919) % (VOCAB - 1), 0)
    order = np.argsort(-lengths, kind="stable")
    return torch.from_numpy(ids[order]), torch.from_numpy(lengths[order]), torch.from_numpy(order)


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("what", choices=["captions", "head"])
    for name, kind, value in (("batch", int, 128), ("words", int, 20), ("spread", int, 1),
                              ("seconds", float, 3.0), ("repeats", int, 5), ("threads", int, 2)):
        ask.add_argument("--" + name, type=kind, default=value)
    o = ask.parse_args()
    torch.set_num_threads(o.threads)
    cot = [numbers(100 + k, (o.batch, DIM)) for k in range(2)]
    if o.what == "captions":
        model, (ids, lengths, order) = Captions(), captions(o)
        inputs, cot = (ids, lengths), [c[order] for c in cot]
    else:
        model, inputs = Head(), numbers(102, (o.batch, IMAGE_DIM, SIDE, SIDE))
    with torch.no_grad():
        for k, (name, p) in enumerate(model.named_parameters()):
            p.copy_(numbers(k, p.shape, 0.05) + (1 if "layer_norm.weight" in name else 0))

    def step():
        model.zero_grad()
        mean, log_std = model(inputs)
        loss = (mean * cot[0]).sum() + (log_std * cot[1]).sum()
        loss.backward()
        return loss.item()

    step()
    wall, cpu, start = [], [], time.perf_counter()
    while len(wall) < o.repeats or time.perf_counter() - start < o.seconds:
        before, cpu_before = time.perf_counter(), time.process_time()
        loss = step()
        wall.append(time.perf_counter() - before)
        cpu.append(time.process_time() - cpu_before)
    squares = sum(float(p.grad.double().square().sum()) for p in model.parameters()
                  if p.grad is not None)
    print(json.dumps({"median_s": statistics.median(wall), "min_s": min(wall),
                      "cpu_s": statistics.median(cpu), "n": len(wall),
                      "peak_rss_mb": peak_rss_mb(), "loss": loss, "squares": squares,
                      "blas": loaded_libraries("blas")}))


if __name__ == "__main__":
    main()
