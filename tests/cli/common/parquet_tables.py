"""Writes Parquet tables with nothing but Python, for tests: both versions of data pages, PLAIN and
dictionary values, every codec that is read. Snappy's pages are literals and zstd's raw blocks, which
is all that a decoder needs to see of them here.

As a program: parquet_tables.py sample CODEC VERSION DICTIONARY OUT, the table that
tests/io/tables/parquet/parquet_page.c knows; parquet_tables.py odd OUT, one with columns that are not read;
parquet_tables.py lies FOLDER, small ones that claim to be large;
parquet_tables.py table OUT COLUMN=FILE..., a column of the lines of a text file, or, COLUMN=@FILE, of the
bytes of the files that its lines name."""
import struct
import sys
import zlib

BOOLEAN, INT32, INT64, FLOAT, DOUBLE, BYTES, FIXED = 0, 1, 2, 4, 5, 6, 7
CODECS = {"none": 0, "snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6}


def varint(x):
    out = b""
    while x >= 0x80:
        out += bytes([x & 0x7F | 0x80])
        x >>= 7
    return out + bytes([x])


def zigzag(x):
    return varint((x << 1) ^ (x >> 63) if x < 0 else x << 1)


class Struct:
    """Fields of a Thrift struct in the compact protocol, in order."""

    def __init__(self):
        self.out, self.last = b"", 0

    def field(self, number, kind, data):
        step = number - self.last
        self.out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + zigzag(number)
        self.out += data
        self.last = number
        return self

    def int(self, number, value, kind=5):
        return self.field(number, kind, zigzag(value))

    def flag(self, number, value):
        return self.field(number, 1 if value else 2, b"")

    def text(self, number, value):
        return self.field(number, 8, varint(len(value)) + value)

    def struct(self, number, value):
        return self.field(number, 12, value.end())

    def list(self, number, kind, items):
        head = bytes([len(items) << 4 | kind]) if len(items) < 15 else bytes([0xF0 | kind]) + varint(len(items))
        return self.field(number, 9, head + b"".join(items))

    def end(self):
        return self.out + b"\0"


def pack(codec, data):
    if codec == "gzip":
        z = zlib.compressobj(6, zlib.DEFLATED, 31)
        return z.compress(data) + z.flush()
    if codec == "snappy":
        out = varint(len(data))
        for at in range(0, len(data), 60):
            piece = data[at:at + 60]
            out += bytes([(len(piece) - 1) << 2]) + piece
        return out
    if codec == "zstd":  # one segment of raw blocks, its size in four bytes
        out = struct.pack("<IBI", 0xFD2FB528, 0xA0, len(data))
        pieces = [data[at:at + 1000] for at in range(0, len(data), 1000)] or [b""]
        for i, piece in enumerate(pieces):
            out += struct.pack("<I", len(piece) << 3 | (i + 1 == len(pieces)))[:3] + piece
        return out
    return data


def hybrid(values, width):
    """Runs where three are alike, else packed groups of eight."""
    out, at = b"", 0
    while at < len(values):
        n = 1
        while at + n < len(values) and values[at + n] == values[at]:
            n += 1
        if n >= 3 or at + n == len(values):
            out += varint(n << 1) + values[at].to_bytes((width + 7) // 8, "little")
            at += n
            continue
        group = (values[at:at + 8] + [0] * 8)[:8]
        if at + 8 > len(values):
            for value in values[at:]:
                out += varint(1 << 1) + value.to_bytes((width + 7) // 8, "little")
            break
        bits = sum(value << i * width for i, value in enumerate(group))
        out += varint(1 << 1 | 1) + bits.to_bytes(width, "little")
        at += 8
    return out


def plain(kind, values):
    if kind == BOOLEAN:
        bits = sum(1 << i for i, value in enumerate(values) if value)
        return bits.to_bytes((len(values) + 7) // 8, "little")
    if kind == BYTES:
        return b"".join(struct.pack("<I", len(value)) + value for value in values)
    code = {INT32: "<i", INT64: "<q", FLOAT: "<f", DOUBLE: "<d"}.get(kind)
    return b"".join(values) if code is None else b"".join(struct.pack(code, v) for v in values)


class Column:
    """name, its kind, its values with None for null; `path` are the structs around it, all optional.
    A required column has no None."""

    def __init__(self, name, kind, values, optional=True, text=False, path=(), **odd):
        self.name, self.kind, self.values, self.optional = name, kind, values, optional
        self.text, self.path, self.odd = text, path, odd
        self.most = len(path) + optional
        self.codec = odd.get("codec")


def pages(column, values, codec, version, dictionary, rows):
    """The bytes of a chunk; where its dictionary and its data begin in them."""
    out, entries = b"", None
    if dictionary and column.kind != BOOLEAN:
        entries = sorted({value for value in values if value is not None})
        data = pack(codec, plain(column.kind, entries))
        head = Struct().int(1, 2).int(2, len(plain(column.kind, entries))).int(3, len(data))
        out = head.struct(7, Struct().int(1, len(entries)).int(2, 0)).end() + data
    start = len(out)
    for at in range(0, len(values), rows):
        some = values[at:at + rows]
        there = [value for value in some if value is not None]
        levels = hybrid([column.most if value is not None else (at + i) % max(column.most, 1)
                         for i, value in enumerate(some)], column.most.bit_length())
        levels = levels if column.most > 0 else b""
        encoding = 8 if entries is not None else column.odd.get("encoding", 0)
        if entries is not None:
            width = max(len(entries) - 1, 1).bit_length()
            body = bytes([width]) + hybrid([entries.index(value) for value in there], width)
        elif column.kind == BOOLEAN and version == 2:
            encoding, runs = 3, hybrid([int(value) for value in there], 1)
            body = struct.pack("<I", len(runs)) + runs
        else:
            body = plain(column.kind, there)
        if version == 1:
            body = (struct.pack("<I", len(levels)) + levels if column.most > 0 else b"") + body
            data = pack(codec, body)
            head = Struct().int(1, 0).int(2, len(body)).int(3, len(data))
            head.struct(5, Struct().int(1, len(some)).int(2, encoding).int(3, 3).int(4, 3))
        else:
            data = levels + pack(codec, body)
            head = Struct().int(1, 3).int(2, len(levels) + len(body)).int(3, len(data))
            head.struct(8, Struct().int(1, len(some)).int(2, len(some) - len(there)).int(3, len(some))
                        .int(4, encoding).int(5, len(levels)).int(6, 0).flag(7, True))
        out += head.end() + data
    return out, 0 if entries is not None else None, start


def schema(columns):
    root, done = [], set()
    tops = []
    for column in columns:
        top = (column.path + (column.name,))[0]
        if top not in tops:
            tops.append(top)
    root.append(Struct().text(4, b"schema").int(5, len(tops)))
    for column in columns:
        for depth, name in enumerate(column.path):
            path = column.path[:depth + 1]
            if path not in done:
                done.add(path)
                inside = {(c.path + (c.name,))[depth + 1] for c in columns if c.path[:depth + 1] == path}
                root.append(Struct().int(3, 1).text(4, name.encode()).int(5, len(inside)))
        leaf = Struct().int(1, column.kind).int(3, column.odd.get("repetition", int(column.optional)))
        leaf.text(4, column.name.encode())
        if column.text:
            leaf.int(6, 0)
        root.append(leaf)
    return [element.end() for element in root]


def write(path, columns, n_rows, codec="none", version=1, dictionary=False, group_rows=15, page_rows=4):
    out, groups = b"PAR1", []
    for first in range(0, n_rows, group_rows):
        n, chunks = min(group_rows, n_rows - first), []
        for column in columns:
            own = column.codec or codec
            data, words, start = pages(column, column.values[first:first + n], own, version, dictionary,
                                       page_rows)
            meta = Struct().int(1, column.kind).list(2, 5, [zigzag(0), zigzag(3)])
            names = [name.encode() for name in column.path + (column.name,)]
            meta.list(3, 8, [varint(len(name)) + name for name in names])
            meta.int(4, CODECS[own]).int(5, n, 6).int(6, len(data), 6).int(7, len(data), 6)
            meta.int(9, len(out) + start, 6)
            if words is not None:
                meta.int(11, len(out), 6)
            chunk = Struct().int(2, len(out), 6).struct(3, meta)
            if column.odd.get("encrypted"):
                chunk.struct(8, Struct().struct(1, Struct()))
            chunks.append(chunk.end())
            out += data
        groups.append(Struct().list(1, 12, chunks).int(2, 0, 6).int(3, n, 6).end())
    footer = Struct().int(1, version).list(2, 12, schema(columns)).int(3, n_rows, 6)
    footer = footer.list(4, 12, groups).text(6, b"penumbra tests").end()
    with open(path, "wb") as f:
        f.write(out + footer + struct.pack("<I", len(footer)) + b"PAR1")


def sample(path, codec, version, dictionary):
    n = 23
    words = ["a red star", "étoile", "a blue\n\"square\""]
    columns = [
        Column("uid", BYTES, [b"%032x" % i for i in range(n)], optional=False, text=True),
        Column("caption", BYTES, [None if i % 5 == 4 else words[i % 3].encode() for i in range(n)], text=True),
        Column("score", DOUBLE, [None if i % 7 == 3 else i * 0.25 - 1 for i in range(n)]),
        Column("half", FLOAT, [i * 0.5 for i in range(n)], optional=False),
        Column("width", INT32, [i - 10 for i in range(n)], optional=False),
        Column("big", INT64, [i * 10 ** 10 - 5 for i in range(n)]),
        Column("flag", BOOLEAN, [i % 3 == 0 for i in range(n)], optional=False),
        Column("bytes", BYTES, [None if i % 6 == 5 else bytes([255, i]) * (i % 4 + 1) for i in range(n)],
               path=("image",)),
        Column("path", BYTES, [None] * n, path=("image",), text=True),
    ]
    write(path, columns, n, codec, int(version), dictionary == "1")


def odd(path):
    n = 3
    columns = [
        Column("caption", BYTES, [b"one", b"two", b"three"], text=True),
        Column("tags", BYTES, [b"a", b"b", b"c"], repetition=2, optional=True),
        Column("bits", INT32, [1, 2, 3], encoding=4),
        Column("brotli", INT32, [1, 2, 3], codec="brotli"),
        Column("secret", INT32, [1, 2, 3], encrypted=True),
    ]
    write(path, columns, n)


def lies(folder):
    """Files of a hundred bytes: 2^60 rows of nothing, of lists, of one word, a dictionary of 2^31 - 1 empty values,
    and an index behind the dictionary."""
    def leaf(name, kind, repetition=0, length=0):
        s = Struct().int(1, kind).int(2, length).int(3, repetition).text(4, name)
        return (s.int(6, 0) if kind == BYTES else s).end()

    def page(type, header, n, encoding, body):
        about = Struct().int(1, n).int(2, encoding)
        return Struct().int(1, type).int(2, len(body)).int(3, len(body)).struct(header, about).end() + body

    def chunk(kind, begin, data, n, words=None):
        meta = Struct().int(1, kind).int(4, 0).int(5, n, 6).int(7, len(data), 6)
        meta.int(9, begin + (words or 0), 6)
        return Struct().struct(3, (meta if words is None else meta.int(11, begin, 6))).end()

    def save(name, leaves, n, chunks, body=b""):
        root = Struct().text(4, b"schema").int(5, len(leaves)).end()
        group = Struct().list(1, 12, chunks).int(3, n, 6).end()
        footer = Struct().list(2, 12, [root] + leaves).int(3, n, 6).list(4, 12, [group]).end()
        with open(f"{folder}/{name}", "wb") as f:
            f.write(b"PAR1" + body + footer + struct.pack("<I", len(footer)) + b"PAR1")

    most = 2 ** 31 - 1
    save("no-columns", [], 2 ** 20, [])
    save("rows-of-lists", [leaf(b"tags", BYTES, 2)], 2 ** 26, [chunk(BYTES, 4, b"", 2 ** 26)])
    word = page(2, 7, 1, 0, plain(BYTES, [b"a red star"]))
    run = word + page(0, 5, most, 8, b"\0")
    save("long-run", [leaf(b"caption", BYTES)], most, [chunk(BYTES, 4, run, most, len(word))], run)
    beyond = word + page(0, 5, 3, 8, b"\x08" + varint(3 << 1) + b"\x05")
    save("index-beyond", [leaf(b"caption", BYTES)], 3, [chunk(BYTES, 4, beyond, 3, len(word))], beyond)
    empty = page(2, 7, most, 0, b"")
    run = empty + page(0, 5, 1, 8, b"\0")
    save("long-dictionary", [leaf(b"caption", FIXED)], 1, [chunk(FIXED, 4, run, 1, len(empty))], run)


def table(path, *parts):
    columns, n = [], 0
    for part in parts:
        name, source = part.split("=", 1)
        lines = open(source.lstrip("@")).read().split("\n")[:-1]
        values = [open(line, "rb").read() if line else None for line in lines] if source[0] == "@" else [
            line.encode() if line else None for line in lines]
        columns.append(Column(name, BYTES, values, text=source[0] != "@"))
        n = len(values)
    write(path, columns, n, "snappy", page_rows=7, group_rows=20)


if __name__ == "__main__":
    {"sample": lambda codec, version, words, out: sample(out, codec, version, words), "odd": odd, "lies": lies,
     "table": table}[sys.argv[1]](*sys.argv[2:])
