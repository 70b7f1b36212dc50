"""Reads flat, uncompressed, PLAIN Parquet files: a reader of its own, written from the format's
description, to look at what penumbra writes. `python3 parquet.py FILE` prints one JSON object a row."""
import json
import struct
import sys


class Thrift:
    def __init__(self, data, at):
        self.data, self.at = data, at

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def zigzag(self):
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def value(self, kind):
        if kind in (1, 2):
            return kind == 1
        if kind in (3, 4, 5, 6):
            return self.zigzag()
        if kind == 8:
            n = self.varint()
            self.at += n
            return self.data[self.at - n:self.at]
        if kind == 9:
            head = self.data[self.at]
            self.at += 1
            n = head >> 4 if head >> 4 < 15 else self.varint()
            return [self.value(head & 15) for _ in range(n)]
        if kind == 12:
            return self.struct()
        raise ValueError("thrift type %d" % kind)

    def struct(self):
        fields, number = {}, 0
        while True:
            head = self.data[self.at]
            self.at += 1
            if head == 0:
                return fields
            number = number + (head >> 4) if head >> 4 else self.zigzag()
            fields[number] = self.value(head & 15)


def levels(data, n):
    out, reader = [], Thrift(data, 0)
    while len(out) < n:
        head = reader.varint()
        if head & 1:
            for byte in data[reader.at:reader.at + (head >> 1)]:
                out += [byte >> k & 1 for k in range(8)]
            reader.at += head >> 1
        else:
            out += [data[reader.at]] * (head >> 1)
            reader.at += 1
    return out[:n]


def column(data, element, meta):
    out, at = [], meta[9]
    while at < meta[9] + meta[7]:
        reader = Thrift(data, at)
        head = reader.struct()
        assert head[1] == 0 and head[2] == head[3] and head[5][2] == 0
        page, n = data[reader.at:reader.at + head[3]], head[5][1]
        at = reader.at + head[3]
        there, p = [1] * n, 0
        if element[3] == 1:
            size = struct.unpack_from("<I", page)[0]
            there, p = levels(page[4:4 + size], n), 4 + size
        for is_there in there:
            if not is_there:
                out.append(None)
            elif element[1] == 5:
                out.append(struct.unpack_from("<d", page, p)[0])
                p += 8
            else:
                size = struct.unpack_from("<I", page, p)[0]
                out.append(page[p + 4:p + 4 + size].decode("utf-8"))
                p += 4 + size
        assert p == len(page)
    assert len(out) == meta[5]
    return out


def read(path):
    data = open(path, "rb").read()
    assert data[:4] == data[-4:] == b"PAR1"
    size = struct.unpack("<I", data[-8:-4])[0]
    footer = Thrift(data, len(data) - 8 - size)
    meta = footer.struct()
    assert footer.at == len(data) - 8
    root, elements = meta[2][0], meta[2][1:]
    assert root[5] == len(elements) and len(meta[4]) == 1
    group = meta[4][0]
    assert group[3] == meta[3]
    table, end = {}, 4
    for element, chunk in zip(elements, group[1]):
        assert chunk[3][3] == [element[4]] and chunk[3][1] == element[1] and chunk[3][4] == 0
        assert chunk[3][9] == end
        end += chunk[3][7]
        table[element[4].decode()] = column(data, element, chunk[3])
    assert end == len(data) - 8 - size and group[2] == end - 4
    return table, meta[3]


if __name__ == "__main__":
    rows, n_rows = read(sys.argv[1])
    for i in range(n_rows):
        print(json.dumps({name: values[i] for name, values in rows.items()}))
