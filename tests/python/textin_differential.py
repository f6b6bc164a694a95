#!/usr/bin/env python3
"""Differential test: text as an input against np.loadtxt, np.genfromtxt and Python's json.

    python tests/python/textin_differential.py --bin target/debug/tslice --count 3000 --seed 1

Every case is a random text, many of them hostile: comments and empty lines anywhere, any line ends, a
byte order mark, NUL bytes, quotes, underscores, hexadecimal digits, spellings of infinity and NaN, cells
that are empty or long, rows of different lengths, lines of names, JSON that is cut or changed. Where
NumPy reads it, tslice must give the same dtype, shape and bytes; where NumPy does not, it must refuse it
with a line and a column, and never fall over. A case is a function of (seed, number): `--only NUMBER`
runs one again.
"""

import io
import json
import random
import re
import sys
import warnings

import numpy as np
from numpy.lib.recfunctions import repack_fields

import harness
import random_tensors
from cases import Case, common_options
from harness import Failure

DTYPES = ["f8", "f8", "f8", "f4", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "c8", "c16", "S3", "U4", ">f4", ">i2",
          ">c16", ">U2"]
SPELLINGS = ["inf", "-inf", "Infinity", "+INF", "nan", "-nan", "NaN", "NAN", "1e400", "-1e400", "1e-400", "5e-324", "2.5e-324", "1.",
             ".5", "+.5", "-0", "0e0", "00012", "1E5", "1e+05", "9007199254740993", "0.1" + "0" * 40 + "1", "1" * 400, "1.7976931348623158e308"]
STRANGE = ["1_0", "0x10", "1e", "e5", ".", "+", "-", "--1", "1,5", '"1"', "'1'", "1\0", "\0", "1 2", "infin", "nan(1)", "1d5", "١", "½",
           "0b1", "1j", "1+2j", "(1+2j)", "1+-2j", "( 3 )", "1+j", "True", "None", "1L", "1f", "\ufeff1", "∞", "", " ", "x" * 300]


def number(rng, dtype):
    kind = np.dtype(dtype).kind
    if rng.random() < 0.15:
        return rng.choice(SPELLINGS)
    if kind == "b" and rng.random() < 0.2:
        return rng.choice(["TRUE", "FALSE", "True", "false"])
    if kind in "iub":
        size = 8 * np.dtype(dtype).itemsize if kind != "b" else 2
        low = -(1 << (size - 1)) if kind == "i" else 0
        value = rng.choice([rng.randrange(0, 20), rng.randrange(low, 1 << (size - (kind == "i")))])
        return rng.choice(["", "", "+"]) * (value >= 0) + str(value)
    if kind in "SU":
        return "".join(rng.choice("abc é1.'\"-") for _ in range(rng.randrange(1, 6)))
    real = rng.choice([repr(rng.uniform(-10, 10)), "%.3e" % rng.gauss(0, 1), str(rng.randrange(-99, 99)), repr(rng.random() * 10.0 ** rng.randrange(-300, 300))])
    if kind == "c" and rng.random() < 0.7:
        other = repr(rng.gauss(0, 1))
        text = f"{real}{'' if other.startswith('-') and rng.random() < 0.8 else '+'}{other}j"
        return f"({text})" if rng.random() < 0.4 else text
    return real


def table(rng, dtype, delimiter):
    """A text, and whether nothing strange has been done to it."""
    strings = np.dtype(dtype).kind in "SU"
    rows = rng.choice([0, 1, 1, 2, 3, 5, 8, rng.randrange(1, 400)])
    columns = rng.choice([1, 1, 2, 3, 4, rng.randrange(1, 60)])
    lines = []
    for _ in range(rows):
        cells = [number(rng, dtype) for _ in range(columns)]
        if not strings and delimiter and rng.random() < 0.3:
            cells = [rng.choice(["", " ", "  ", "\t" if delimiter != "\t" else ""]) + cell + rng.choice(["", " "]) for cell in cells]
        if delimiter is None:
            cells = [cell.replace(" ", "_") or "_" for cell in cells]
            gap = rng.choice([" ", "  ", "\t", " \t ", "\x0c", "\u00a0", " \u3000", "\u2003\t", "\x85"])
            lines.append(rng.choice(["", " "]) + gap.join(cells) + rng.choice(["", " "]))
        else:
            lines.append(delimiter.join(cells))
    while rng.random() < 0.3:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(["", "# words, and 1 number", "#"]))
    if lines and rng.random() < 0.1:
        lines[rng.randrange(len(lines))] += rng.choice(["# behind", " # behind"][: 1 if strings else 2])
    if rng.random() < 0.3 and lines:
        at = rng.randrange(len(lines))
        what = rng.randrange(4)
        if what == 0:
            cells = lines[at].split(delimiter)
            if cells:
                cells[rng.randrange(len(cells))] = rng.choice(STRANGE)
            lines[at] = (delimiter or " ").join(cells)
        elif what == 1:
            lines[at] += (delimiter or " ") + rng.choice(["1", "", "2" * 300])
        elif what == 2:
            lines[at] = (delimiter or " ").join(lines[at].split(delimiter)[:-1])
        else:
            cut = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:cut] + rng.choice(STRANGE) + lines[at][cut:]
    end = rng.choice(["\n", "\n", "\r\n", "\r"])
    if strings and any('"' in line for line in lines):
        # a cell in quotes keeps the ends of its lines as the file has them, and Python reads each as \n
        end = "\n"
    return end.join(lines) + rng.choice(["", end])


def decoded(data):
    """The text as open() gives it: without the mark, and with `\\n` for each end of a line."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=None).read()


def ends_in_quotes(text, delimiter):
    """Whether the last cell in quotes does not end, by the rules of NumPy's tokenizer."""
    state = "begin"
    for char in text:
        if state == "quoted":
            state = "behind" if char == '"' else "quoted"
        elif state == "behind" and char == '"':
            state = "quoted"
        elif state == "comment":
            state = "begin" if char == "\n" else "comment"
        elif char == "#":
            state = "comment"
        elif char in (delimiter, "\n"):
            state = "begin"
        elif state == "begin" and char == '"':
            state = "quoted"
        else:
            state = "bare"
    return state == "quoted"


def loaded(text, **options):
    """What np.loadtxt makes of a text; None where it refuses it, or finds nothing."""
    skipped = "\n".join(text.split("\n")[options.get("skiprows", 0):])
    is_text = np.dtype(options["dtype"]).kind in "SU"
    if options.get("quotechar") and is_text and ends_in_quotes(skipped, options["delimiter"]):
        # NumPy closes the quotes at the end of the text, which has been taken into one cell since they began
        return None
    if options.get("dtype") == "f2" and loaded(text, **{**options, "dtype": "f8"}) is None:
        # of float16 alone NumPy reads what Python's float() does: underscores, digits of other scripts
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            array = np.loadtxt(io.StringIO(text), **options)
        except (ValueError, TypeError, UnicodeError, OverflowError):
            return None
    return array if array.size else None


def same(found, expected):
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        raise Failure(f"{found.dtype} {found.shape}, expected {expected.dtype} {expected.shape}")
    if found.dtype.names:
        for name in found.dtype.names:
            same(found[name], expected[name])
    elif found.dtype.kind in "fc":
        # any NaN is as good as another
        parts = [(found.real, expected.real), (found.imag, expected.imag)] if found.dtype.kind == "c" else [(found, expected)]
        for ours, theirs in parts:
            if not np.array_equal(ours, theirs, equal_nan=True) or (np.signbit(ours) != np.signbit(theirs))[~np.isnan(theirs)].any():
                raise Failure(f"{found!r}, expected {expected!r}")
    elif found.tobytes() != expected.tobytes():
        raise Failure(f"{found!r}, expected {expected!r}")


def read(case, rng, data, extension, args, expected, places=True):
    named = rng.random() < 0.6
    name = f"in.{extension}" if named else rng.choice(["in", "in.dat", "in.TXT" if extension == "txt" else "table"])
    if name == "in.TXT":
        named = True
    case.write(name, data)
    way, given = rng.choice(["file", "file", "redirect", "pipe"]), {}
    if way != "file":
        given = {"stdin": name} if way == "redirect" else {"stdin": name, "pipe_in": data}
    source = name if way == "file" else "-"
    args = [source, *args, *([] if named and way == "file" else ["--from", extension])]
    for option in common_options(rng, way != "pipe"):
        args += option
    status, out, err = case.run([*args, "-o", "-", "--to", "npy"], **given)
    if expected is None:
        case.check_error(status, err, [1])
        is_placed = re.search(r"line \d+, column \d+: |line \d+: there is no column|is empty|has no row|a text of|lists of two", err)
        if places and not is_placed:
            raise Failure(f"no line and column: {err!r}")
    elif status != 0:
        raise Failure(f"exit status {status}, expected {expected!r}")
    else:
        same(np.load(io.BytesIO(out)), expected)


def table_case(case):
    rng = case.rng
    dtype = rng.choice(DTYPES)
    extension = rng.choice(["csv", "csv", "tsv", "txt", "txt"])
    delimiter = {"csv": ",", "tsv": "\t", "txt": None}[extension]
    args = []
    if rng.random() < 0.15:
        delimiter = rng.choice([";", "|", " ", ":"])
        args += ["--delimiter", delimiter]
    if dtype != "f8" or rng.random() < 0.1:
        args += ["--dtype", {"i8": "int64", "u8": "uint64"}.get(dtype, dtype)]
    text = table(rng, dtype, delimiter)
    skip = 0
    if rng.random() < 0.2:
        skip = rng.randrange(4)
        args += ["--skip-rows", str(skip)]
    names = None
    if np.dtype(dtype).kind not in "SU" and rng.random() < 0.2:
        width = max(1, len([c for c in (text.lstrip().splitlines() or [""])[0].split(delimiter)]))
        names = [rng.choice(["col", "x y" if delimiter not in (None, " ") else "xy", "é", "a-1", "q"]) + str(n) for n in range(width)]
        junk = rng.choice(["", "# made by me\n", "\n"]) if skip == 0 else "word 1\n" * skip
        text = junk + (delimiter or " ").join(names) + "\n" + text
    usecols = None
    if names is None and rng.random() < 0.15:
        width = 1 + max(len(line.split(delimiter)) for line in text.splitlines() or [""])
        usecols = [rng.randrange(-width, width) for _ in range(rng.choice([1, 1, 2, 3, 5]))]
        args.append("--columns=" + ",".join(map(str, usecols)))
    data = text.encode()
    if rng.random() < 0.1:
        data = b"\xef\xbb\xbf" + data
    plain = decoded(data)
    if dtype == "b1":
        # words that np.loadtxt does not know
        plain = re.sub(r"(?i)\b(true|false)\b", lambda word: "01"[word[0].lower() == "true"], plain)
    quotes = '"' if extension in ("csv", "tsv") and delimiter != '"' else None
    options = dict(dtype=dtype, delimiter=delimiter, skiprows=skip, quotechar=quotes, usecols=usecols)
    if names:
        # without the line of names, which np.loadtxt takes for a row
        lines = plain.split("\n")
        at = lines.index((delimiter or " ").join(names))
        without = "\n".join(lines[at + 1:])
        expected = loaded(without, **{**options, "skiprows": 0})
        found = 0 if expected is None else [1, *np.loadtxt(without.split("\n"), **{**options, "skiprows": 0, "ndmin": 2}).shape][-1]
        if found != len(names):
            expected = None
        if rng.random() < 0.5:
            args.append("--names")
            if expected is not None:
                fields = np.dtype([(name, dtype) for name in names])
                expected = loaded(without, **{**options, "skiprows": 0, "dtype": fields})
    else:
        expected = loaded(plain, **options)
        if expected is None and np.dtype(dtype).kind not in "SU":
            expected = without_heading(plain, skip, delimiter, options)
    read(case, rng, data, extension, args, expected)


def is_number(cell):
    """Whether Python or NumPy has any number for a cell; `j` alone is a name."""
    if not cell.strip().isascii():
        return False
    for read in (float, lambda text: int(text, 0), lambda text: re.search(r"[0-9.]_?j\)?\s*$", text, re.I) and complex(text) or 1 / 0):
        try:
            read(cell)
            return True
        except (ValueError, ZeroDivisionError):
            pass
    return loaded(cell, dtype=complex, delimiter="\x01") is not None


def is_faulty(cell):
    """Whether it begins as a number, or stands for one that is missing or too wide for its column."""
    cell = cell.strip()
    return bool(re.match(r"[+.-]*[0-9]", cell) or re.fullmatch(r"NA|N/A|n/a|NULL|null|\?|-+|\*+", cell))


def without_heading(plain, skip, delimiter, options):
    """What is read where the first line turns out to hold no number."""
    lines = plain.split("\n")[skip:]
    for at, line in enumerate(lines):
        line = line.split("#")[0]
        cells = line.split(delimiter)
        if line if delimiter else cells:
            break
    else:
        return None
    if any(is_number(cell) or is_faulty(cell) or not cell.strip() for cell in cells):
        return None
    rest = "\n".join(lines[at + 1:])
    array = loaded(rest, **{**options, "skiprows": 0, "ndmin": 2, "usecols": None})
    if array is None or array.shape[1] != len(cells):
        return None
    return loaded(rest, **{**options, "skiprows": 0})


FAULTY = ["5.687138413593-304", "*******", "1.0D+00", "NA", "---", "-", "?", "N/A", "1e", "0x10", "1_0", "12:30", "2020-01-01", "1,5"]


def first_line_case(case):
    """A first line of faulty numbers, which np.loadtxt refuses: it never passes for one of names."""
    rng = case.rng
    extension, delimiter = rng.choice([("csv", ","), ("tsv", "\t"), ("txt", " ")])
    columns = rng.randrange(1, 6)
    faulty = [it for it in FAULTY if delimiter not in it]
    first = [rng.choice([*faulty, rng.choice(["x", "name", "é"])]) for _ in range(columns)]
    first[rng.randrange(columns)] = rng.choice(faulty)
    rows = [[repr(rng.gauss(0, 9)) for _ in range(columns)] for _ in range(rng.randrange(1, 5))]
    text = "\n".join(delimiter.join(row) for row in [first, *rows]) + "\n"
    args, usecols, skip = [], None, 0
    if rng.random() < 0.4:
        usecols = sorted(rng.sample(range(columns), rng.randrange(1, columns + 1)))
        args = ["--columns=" + ",".join(map(str, usecols))]
    if rng.random() < 0.3:
        text, skip = "# a\nname\n" + text, 2
        args += ["--skip-rows", "2"]
    expected = loaded(text, dtype="f8", delimiter=None if extension == "txt" else delimiter, usecols=usecols, skiprows=skip)
    read(case, rng, text.encode(), extension, args, expected)


def wide_case(case):
    """Integers beyond 2^53 are doubles with a note; `--dtype int64` keeps them."""
    rng = case.rng
    rows = [[rng.choice([rng.randrange(-99, 99), rng.randrange(-(1 << 53), (1 << 53) + 1), rng.randrange(-(1 << 63), 1 << 63)])
             for _ in range(rng.randrange(1, 4))]]
    rows += [[rng.randrange(-(1 << 53), 1 << 53) for _ in rows[0]] for _ in range(rng.randrange(4))]
    rng.shuffle(rows)
    text = "\n".join(",".join(map(str, row)) for row in rows) + "\n"
    case.write("w.csv", text.encode())
    for dtype, args in [("f8", []), ("i8", ["--dtype", "int64"]), ("f8", ["--dtype", "float64"])]:
        status, out, err = case.run(["w.csv", *args, "-o", "-", "--to", "npy"])
        if status:
            raise Failure(f"exit status {status}")
        same(np.load(io.BytesIO(out)), loaded(text, dtype=dtype, delimiter=","))
        is_wide = not args and any(abs(it) > 1 << 53 for row in rows for it in row)
        if ("integers beyond 2^53 are read as float64" in err) != is_wide:
            raise Failure(f"the note is wrong: {err!r}")


def genfromtxt_case(case):
    """Columns with names, as np.genfromtxt(names=True) reads them."""
    rng = case.rng
    columns, rows = rng.randrange(1, 8), rng.randrange(1, 30)
    names = [f"c{n}" for n in range(columns)]
    cells = [[repr(rng.gauss(0, 10)) for _ in names] for _ in range(rows)]
    words = [n for n in range(columns - 1) if rng.random() < 0.3] if rng.random() < 0.3 else []
    for row in cells:
        for n in words:
            row[n] = rng.choice(["anna", "bob", "", "x y", "'"])
    heading = rng.choice(["", "# ", "#"])
    text = "\n".join([heading + ",".join(names)] + [",".join(row) for row in cells]) + "\n"
    numbers = [n for n in range(columns) if n not in words]
    if words or rng.random() < 0.2:
        taken = rng.sample(numbers, rng.randrange(1, len(numbers) + 1))
        expected = np.genfromtxt(io.StringIO(text), delimiter=",", names=True, usecols=sorted(taken), ndmin=1)
        if not expected.dtype.names:
            expected = expected.astype([(names[taken[0]], "f8")])
        # in their order in the file where genfromtxt takes all
        expected = repack_fields(expected[[names[n] for n in taken]])
        way = rng.randrange(2)
        if way == 0:
            args = ["--names", "--columns", ",".join(str(rng.choice([n, n - columns])) for n in taken)]
        else:
            args = ["--field", ",".join(names[n] for n in taken) + ","]
        if rows == 1:
            expected = expected.reshape(())
        return read(case, rng, text.encode(), "csv", args, expected)
    expected = np.genfromtxt(io.StringIO(text), delimiter=",", names=True)
    args = ["--names"]
    if rng.random() < 0.4:
        name = rng.choice(names)
        args += ["--field", name]
        expected = expected[name]
    read(case, rng, text.encode(), "csv", args, expected)


def json_value(rng, depth, shape, kind):
    if depth == len(shape):
        return {"i": lambda: rng.choice([rng.randrange(-99, 99), rng.randrange(-(1 << 63), 1 << 63)]),
                "u": lambda: rng.choice([rng.randrange(99), rng.randrange(1 << 64)]),
                "v": lambda: rng.choice([rng.randrange(-99, 99), rng.randrange(1 << 63, 1 << 64), 0.5, 7]),
                "b": lambda: rng.random() < 0.5,
                "f": lambda: rng.choice([rng.gauss(0, 1), rng.uniform(-1, 1) * 10.0 ** rng.randrange(-300, 300), float("nan"), float("-inf")]),
                "m": lambda: rng.choice([1, 2.5, True, -(1 << 53) - 1, 1 << 70])}[kind]()
    return [json_value(rng, depth + 1, shape, kind) for _ in range(shape[depth])]


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]


def understood(data):
    """The array that JSON stands for; None where it is none."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
        if data.lstrip(b" \t\r\n").startswith(b"{"):
            return None
        np.empty(np.shape(value))
    except (ValueError, RecursionError, UnicodeError):
        return None
    flat = leaves(value)
    strings = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
    flat = [strings.get(leaf, leaf) if isinstance(leaf, str) else leaf for leaf in flat]
    if not all(isinstance(leaf, (int, float)) for leaf in flat):
        return None
    kinds = {type(leaf) for leaf in flat}
    dtype = {frozenset([int]): "i8", frozenset([bool]): "?"}.get(frozenset(kinds), "f8")
    if dtype == "i8" and flat and max(flat) >= 1 << 63 and min(flat) >= 0:
        dtype = "u8"
    if dtype in ("i8", "u8") and any(not np.iinfo(dtype).min <= leaf <= np.iinfo(dtype).max for leaf in flat):
        return None
    if dtype == "f8":
        flat = [float(leaf) if not isinstance(leaf, int) or abs(leaf) < 1 << 1000 else float("inf") for leaf in flat]
    return np.array(flat, dtype).reshape(np.shape(value))


def json_case(case):
    rng = case.rng
    shape = [rng.choice([0, 1, 2, 3, 5]) for _ in range(rng.randrange(1, 5))]
    if rng.random() < 0.1:
        shape = [rng.randrange(1000, 9000), rng.randrange(1, 6)]
    kind = rng.choice("ibfmuv")
    value = json_value(rng, 0, shape, kind)
    text = json.dumps(value, indent=rng.choice([None, None, 1]), separators=rng.choice([None, (",", ":")]))
    if rng.random() < 0.5:
        text = re.sub(r"(-?Infinity|NaN)", r'"\1"', text)
    if rng.random() < 0.35:
        at = rng.randrange(len(text) + 1)
        text = rng.choice([
            text[:at], text[:at] + text[at + 1:], text + rng.choice(["]", ",", " 1", "x"]),
            text[:at] + rng.choice(["[", "]", ",", "null", "1", "-", "\0", "{}", '"', '"x"', "01", "+1", ".5", "1.", "NaN", "é", "\\"]) + text[at:]])
    data = text.encode()
    expected = understood(data)
    if not text.lstrip().startswith("["):
        # nothing but a list is known by its first byte where there is no name
        case.write("x.json", data)
        status, out, err = case.run(["x.json", "--from", "json", "-o", "-", "--to", "npy"])
        if expected is None:
            case.check_error(status, err, [1])
        elif status:
            raise Failure(f"expected {expected!r}")
        else:
            same(np.load(io.BytesIO(out)), expected)
        return
    read(case, rng, data, "json", [], expected)


def round_trip_case(case):
    """What tslice writes as text is read back."""
    rng = case.rng
    ndim = rng.randrange(1, 5)
    extension = rng.choice(["csv", "tsv", "txt", "json"])
    shape = [rng.randrange(2, 6) for _ in range(ndim if extension == "json" else min(ndim, 2))]
    code = rng.choice(["f8", "f4", "f2", "i8", "u8", "i4", "b1", "c8", "c16"])
    dtype = np.dtype(code)
    with np.errstate(all="ignore"):
        array = np.frombuffer(rng.randbytes(int(np.prod(shape)) * dtype.itemsize), dtype if code != "b1" else "u1").reshape(shape)
        array = (array % 2 == 1) if code == "b1" else np.where(np.isnan(array), dtype.type(rng.choice([float("nan"), 1])) if dtype.kind in "fc" else array, array).astype(dtype)
    out = io.BytesIO()
    np.save(out, array)
    case.write("a.npy", out.getvalue())
    status, _, _ = case.run(["a.npy", "-o", f"b.{extension}"])
    if status:
        raise Failure("no text is written")
    status, out, _ = case.run([f"b.{extension}", "--dtype", dtype.name, "-o", "-", "--to", "npy"])
    if status:
        raise Failure("it is not read back")
    same(np.load(io.BytesIO(out)), array)


def bytes_case(case):
    """Any bytes at all: an array or one short line."""
    rng = case.rng
    data = rng.randbytes(rng.randrange(1, 400))
    if rng.random() < 0.6:
        data = bytes(rng.choice(b"0123456789.,- \n\r\t#e+[]{}\"\0\xffntru") for _ in range(rng.randrange(1, 400)))
    extension = rng.choice(["csv", "tsv", "txt", "json"])
    case.write(f"x.{extension}", data)
    args = rng.choice([[], ["--dtype", "i4"], ["--names"][: extension != "json"]])
    status, _, err = case.run([f"x.{extension}", *args, "-o", "-", "--to", "npy"])
    if status:
        case.check_error(status, err, [1])
        if len(err) > 1500 or err.count("\n") > 3:
            raise Failure("a long message")


KINDS = [table_case] * 11 + [first_line_case] * 2 + [wide_case, genfromtxt_case] + [json_case] * 5 + [round_trip_case] * 2 + [bytes_case] * 2


def one_case(case):
    case.rng.choice(KINDS)(case)


def one(job):
    options, number = job
    case = Case(random.Random(f"textin {options.seed} {number}"))
    return harness.run_case(case, one_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.splitlines()[0], 3000).parse_args()
    harness.begin(options)
    sys.exit(harness.run_cases("textin_differential", options, one, random_tensors.start_worker))


if __name__ == "__main__":
    main()
