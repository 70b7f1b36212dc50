"""Retrieval evaluated both ways in plain PyTorch: the best we found short of a compiled loop.

  torch_eval.py --captions 25000 --images 5000 --dim 512 --rounds 3 --threads 2

One product gives the scores of all pairs by csd (unit means, one trace each). The rank of the best
true item of a query is 1 + the number of items with a higher score than it, by comparing blocks of
the matrix; R-Precision and mAP@R need the ranks of all true items, so all are counted. Prints one
JSON object: median seconds, R@1 both ways, peak memory.
"""
import argparse
import json
import resource
import time

import torch


def make(n, dim, seed):
    g = torch.Generator().manual_seed(seed)
    mean = torch.nn.functional.normalize(torch.randn(n, dim, generator=g), dim=1)
    return mean, torch.randn(n, dim, generator=g).mul_(0.5).sub_(8)


def ranks(scores, true, block):
    """Ranks of the true items (n, R) of each row of scores (n, N)."""
    out = torch.empty(true.shape, dtype=torch.int64)
    for begin in range(0, scores.shape[0], block):
        part = scores[begin:begin + block]
        limit = part.gather(1, true[begin:begin + block])
        for r in range(true.shape[1]):
            out[begin:begin + block, r] = (part > limit[:, r:r + 1]).sum(1) + 1
    return out.sort(1).values


def figures(rank):
    n_true = rank.shape[1]
    place = torch.arange(1, n_true + 1)
    inside = rank <= n_true
    return {"recall": [float((rank[:, 0] <= k).float().mean()) for k in (1, 5, 10)],
            "r_precision": float(inside.float().mean()),
            "map_at_r": float(((place / rank) * inside).sum(1).mean() / n_true),
            "median_rank": float(rank[:, 0].float().median())}


def evaluate(images, texts, each, block):
    (image_mean, image_log_var), (text_mean, text_log_var) = images, texts
    scores = image_mean @ text_mean.t()
    scores -= 0.5 * image_log_var.exp().sum(1)[:, None]
    scores -= 0.5 * text_log_var.exp().sum(1)[None, :]
    n_images, n_texts = scores.shape
    forward = ranks(scores, torch.arange(n_texts).view(n_images, each), block)
    backward = ranks(scores.t(), torch.arange(n_images).repeat_interleave(each)[:, None], block)
    return figures(forward), figures(backward)


def main():
    p = argparse.ArgumentParser()
    for name, value in (("captions", 25000), ("images", 5000), ("dim", 512), ("rounds", 3),
                        ("threads", 2), ("block", 256)):
        p.add_argument("--" + name, type=int, default=value)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    each = a.captions // a.images
    images, (mean, log_var) = make(a.images, a.dim, 1), make(each * a.images, a.dim, 2)
    pulled = mean + 0.2 * images[0].repeat_interleave(each, 0)
    texts = torch.nn.functional.normalize(pulled, dim=1), log_var
    seconds = []
    with torch.inference_mode():
        for _ in range(a.rounds + 1):
            start = time.perf_counter()
            forward, backward = evaluate(images, texts, each, a.block)
            seconds.append(time.perf_counter() - start)
    seconds = sorted(seconds[1:])
    print(json.dumps({"median_s": seconds[len(seconds) // 2], "torch": torch.__version__,
                      "forward": forward, "backward": backward,
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3}))


if __name__ == "__main__":
    main()
