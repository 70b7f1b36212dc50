# Rank figures by their definitions over all pairs of rows, for tests of what the program prints.
import math


def sign(d):
    return (d > 0) - (d < 0)


def spearman(x, y):
    def ranks(v):
        return [sum(sign(a - b) for b in v) / 2 for a in v]
    a, b = ranks(x), ranks(y)
    return sum(p * q for p, q in zip(a, b)) / math.sqrt(sum(p * p for p in a) * sum(q * q for q in b))


def kendall(x, y):
    pairs = [(sign(x[i] - x[j]), sign(y[i] - y[j])) for i in range(len(x)) for j in range(i)]
    return sum(a * b for a, b in pairs) / math.sqrt(sum(a * a for a, _ in pairs) * sum(b * b for _, b in pairs))


def auroc(high, score):
    ones = [s for h, s in zip(high, score) if h]
    zeros = [s for h, s in zip(high, score) if not h]
    return sum(0.5 + 0.5 * sign(a - b) for a in ones for b in zeros) / len(ones) / len(zeros)
