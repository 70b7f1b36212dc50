"""Reads the tokenizer.json files of `penumbra tokenizer train`: whole words, byte-level BPE.

Only what those files use is known; anything else is an error rather than a silent difference.
"""
import json
import re

# GPT-2's splitting; \p{L} is written [^\W\d_] because Python's re has no Unicode classes.
BYTE_LEVEL_SPLIT = re.compile(
    r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")


def byte_alphabet():
    """The printable character that stands for each byte in byte-level vocabularies."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    table = {b: chr(b) for b in printable}
    table.update({b: chr(256 + i) for i, b in enumerate(others)})
    return table


def make_normalizer(entry):
    kind = entry["type"] if entry else None
    if kind is None:
        return lambda text: text
    if kind == "Sequence":
        parts = [make_normalizer(e) for e in entry["normalizers"]]

        def sequence(text):
            for part in parts:
                text = part(text)
            return text

        return sequence
    if kind == "Replace" and "String" in entry["pattern"]:
        return lambda text: text.replace(entry["pattern"]["String"], entry["content"])
    if kind == "Replace":
        pattern = re.compile(entry["pattern"]["Regex"])
        return lambda text: pattern.sub(entry["content"], text)
    if kind == "Lowercase":
        return str.lower
    if kind == "Strip":
        return str.strip
    raise ValueError(f"normalizer {kind} is not known here")


class Tokenizer:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            file = json.load(f)
        model = file["model"]
        self.kind, self.vocab = model["type"], model["vocab"]
        if self.kind not in ("WordLevel", "BPE"):
            raise ValueError(f"{path}: model {self.kind} is not known here")
        self.normalize = make_normalizer(file["normalizer"])
        self.ranks = {tuple(m.split(" ") if isinstance(m, str) else m): i
                      for i, m in enumerate(model.get("merges", []))}
        self.alphabet = byte_alphabet()
        self.pad, self.eos = self.vocab["[PAD]"], self.vocab["</s>"]
        self.special = {e["id"] for e in file["added_tokens"] if e["content"] != "[UNK]"}
        self.cache = {}

    def merge(self, word):
        """The parts of a word after all merges, lowest rank first."""
        parts = [self.alphabet[b] for b in word.encode()]
        while len(parts) > 1:
            rank, i = min((self.ranks.get(pair, 1 << 30), i)
                          for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == 1 << 30:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return [self.vocab[p] for p in parts]

    def words(self, text):
        text = self.normalize(text)
        if self.kind == "WordLevel":
            return re.findall(r"\w+|[^\w\s]+", text)
        if text and not text.startswith(" "):
            text = " " + text
        return BYTE_LEVEL_SPLIT.findall(text)

    def encode(self, text, length):
        """Exactly `length` ids: cut so that the end token stays, padded on the right."""
        ids = []
        for word in self.words(text):
            if word not in self.cache:
                unknown = self.vocab.get("[UNK]")
                self.cache[word] = ([self.vocab.get(word, unknown)] if self.kind == "WordLevel"
                                    else self.merge(word))
            ids += self.cache[word]
        ids = ids[:length - 1] + [self.eos]
        return ids + [self.pad] * (length - len(ids))
