#!/usr/bin/env python3
"""Differential test: headers of .npy, against np.load.

    python tests/python/headers.py --bin target/debug/tslice --count 1000 --seed 1

What np.load takes must come out as np.save writes it again, and what it refuses must be refused. A
header in a spelling that `repr` does not write (numbers in other bases, comments, raw and joined
strings, ...) may be refused as well, and so may types that np.save does not write: those with commas
or counts, and titles that are no strings. Needs Python 3.9, NumPy 2.
"""

import ast
import io
import os
import random
import struct
import sys
import tempfile
import warnings

import numpy as np

import harness

DATA = bytes(range(256)) * 64

# Spellings of a descr, taken or refused.
DESCRS = r"""
'<i4' | "<i4" | '''<i4''' | '<' 'i' "4" | r'<i4' | R"<i4" | u'<i4' | b'<i4' | rb'<i4' | f'<i4' | ('<i4') | ('<i4',) | ('<i4', 1) | ('<i4', (1,)) | ('<i4', (1, 1)) | ('<i4', ()) | ('<i4', 2) | ('1i4', 1) | ([('a', 'i4')], (1,))
'\x3ci4' | '\74i4' | '<i4\q' | ' <i4' | '<i4:' | 'bool' | bool | 3 | None | >i4 | {'names': ['a'], 'formats': ['<i4']}
'<i4,<i2' | 'i4,' | ',i4' | 'i4,,i2' | 'i4,i2,' | 'i4 , i2' | '=i4,>f8,|S5' | '2i4,f8' | '(2,3)i4, f8' | '2,3i4,u1'
'i4, (2,)f4' | 'i4, (2i2' | '(2)i4' | '(2)i4,u1' | '()i4,u1' | '3i4' | '1i4' | '>2i4' | '<2>i4,u1' | '=2<i4,u1' | '2 i4,u1'
'M8[s],m8[2D]' | 'U3,S2' | 'i4;i2' | 'O,i4' | 'V3,V2' | '<V2,i1' | '1i4,i4' | '(1,)i4,i4' | '?,b,B' | 'float64,int8' | ' i4,i4'
[('a','<i4'),] | [['a','<i4']] | [(u'a','<i4')] | [(b'a','<i4')] | [('a','<i4',2)] | [('a','<i4',+2)] | [('a','<i4',0x2)]
[('a','<i4',(1_0,))] | [('a','<i4,<i2')] | [('a','3i4')] | [('a','<i4,<i2',(2,))] | [('a','1i4')] | [('a','2i4',3)]
[(('t', 'b'), '<i8')] | [((b'a', 'b'), '<i8')] | [((b'\'"\xff\n', 'b'), '<i8')] | [((b"it's", 'b'), '<i8')] | [((1, 'b'), '<i8')]
[((True, 'b'), '<i8')] | [((None, 'b'), '<i8')] | [(((1, b'x', ()), 'b'), '<i8')] | [(([1], 'b'), '<i8')] | [(({}, 'b'), '<i8')]
[((b'b', 'b'), '<i8')] | [(('b', 'b'), '<i8')] | [((b'a', 'b'), 'i1'), ((b'a', 'c'), 'i1')] | [(('a', 'b'), 'i1'), (('a', 'c'), 'i1')]
[((b'', 'b'), '<i8')] | [(('', 'b'), '<i8')] | [((b'a' b'c', 'b'), 'i1')] | [((b'a' 'c', 'b'), 'i1')] | [('a' 'b', 'i1')]
"""

SHAPES = """(2,) | (1_0,) | (0x2,) | (0X2,) | (0o2,) | (0b10,) | (+2,) | (+(2),) | (-(2),) | (++2,) | (--2,) | (-0,) | (00,) | (02,)
(1__0,) | (_1,) | (0x_2,) | (0_1,) | (2L,) | (0x2L,) | (2 ,3) | ((2),) | (2) | 2 | [2] | (2,,) | (True,) | (None,) | (1+1,) | ()
(0_0,) | (1_,) | (0b12,) | (0xg,) | (2,# two
 3) | (2 \\
,) | (9223372036854775807,0) | (2,0x_1) | (*(2,),) | ('2',) | (~-3,) | (2LL,)"""

TEXTS = [
    "{D, F, S} # end", "# first\n{D, F, S}", "{D, # a comment\n F, S}", "{D, F, S", "{D,, F, S}", "{D, F, S}{}", "({D, F, S})",
    "{D, F, 'shape': (9,), S}", "{'descr': 3, D, F, S}", "{F, F, S, D}", "{D, F, S, 'more': 1}", "{D, F}", "{D, F, S};",
    " {D, F, S}", "\t{D, F, S}", "\n{D, F, S}", "{D,\x0c F, S}", "{D,\x0b F, S}", "{D,\r F, S}", "{D,\\\n F, S}", "{D, F, S}\0",
    "{D,\xa0F, S}", "dict(D, F, S)", "{**{}, D, F, S}", "{D, F, S}\\", "{D, 'fortran_order': 0, S}", "{D, 'fortran_order': (True), S}",
    "{D, F, '''shape''': (2,)}", "{D, F, 'sha' 'pe': (2,)}", "{b'descr': '<i4', F, S}", "{D, F, S} # \xe9",
]


def header(text, version):
    raw = text.encode("utf-8" if version == 3 else "latin-1")
    length = 10 if version == 1 else 12
    raw += b" " * (-(length + len(raw) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(raw)) + raw


def by_numpy(data):
    """What np.save writes, in C order, of what np.load finds; None where it refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.load(io.BytesIO(data), max_header_size=1 << 20)
    except Exception:
        return None
    out = io.BytesIO()
    np.save(out, np.array(array, order="C"))
    return out.getvalue()


def spell_integer(rng, value, odd):
    """A number as somebody may write it."""
    if not odd:
        return str(value)
    sign, digits = ("-" if value < 0 else rng.choice(["", "", "+"])), abs(value)
    text = rng.choice(["{}", "{:_}", "{:#x}", "{:#o}", "{:#b}", "0X{:x}", "0x_{:x}"] * 9 + ["0{}", "{}_", "{}L"]).format(digits)
    return sign + rng.choice(["{}", "{}", "({})", " {} "]).format(text)


def spell_string(rng, text, odd):
    quote = rng.choice(["'", '"', "'''", '"""'] if odd else ["'", '"'])
    forms = lambda c: [c] * 8 + [f"\\x{ord(c):02x}", f"\\u{ord(c):04x}", f"\\U{ord(c):08x}"] + [f"\\{ord(c):o}", "\\\n" + c] * odd
    body = "".join(rng.choice(forms(c)) for c in text)
    if odd and len(text) > 1 and rng.random() < 0.2:
        return spell_string(rng, text[:1], odd) + rng.choice([" ", "", "  # and\n"]) + spell_string(rng, text[1:], odd)
    prefixes = ["U", "r", "R", "b"] if odd and "\\" not in body else []
    return rng.choice([""] * 20 + ["u"] * 4 + prefixes) + quote + body + quote


def random_header(rng, odd):
    item = rng.choice(["<i4", ">f8", "|u1", "<M8[s]", "<U3", "<i4,<i2", "2u1,f4", "(2,1)i2,S3", "1i4"])
    gap = lambda: rng.choice([""] * 6 + [" ", "\n", "\t"] + ["# no\n", "\\\n"] * odd)
    descr = spell_string(rng, item, odd)
    if rng.random() < 0.4:
        title = rng.choice(["'t'", "b't\\x00'", "7", "True", "None", "(1, b'2')", spell_string(rng, "tt", odd)])
        name = spell_string(rng, "ab", odd)
        name = f"({title},{gap()}{name})" if rng.random() < 0.5 else name
        shape = rng.choice(["", "", f",{gap()}{spell_integer(rng, 2, odd)}", f", ({spell_integer(rng, 2, odd)},)"])
        descr = f"[({name},{gap()} {descr}{shape})]"
    lengths = [spell_integer(rng, rng.choice([0, 1, 2, 3, 10] * 9 + [-1]), odd) for _ in range(rng.randint(0, 3))]
    shape = f"({gap()}{(',' + gap()).join(lengths)}{',' if len(lengths) == 1 or rng.random() < 0.3 and lengths else ''})"
    order = rng.choice(["False", "True", "(False)"])
    keys = [("descr", descr), ("fortran_order", order), ("shape", shape)]
    rng.shuffle(keys)
    if rng.random() < 0.1:
        keys.insert(0, rng.choice(keys))
    entries = [f"{spell_string(rng, key, odd)}{gap()}:{gap()} {value}{gap()}" for key, value in keys]
    return "{" + ("," + gap()).join(entries) + rng.choice(["", ", "]) + "}"


def fixed():
    split = lambda text, cut: [form.strip() for line in text.strip().split("\n" if cut else "\0") for form in line.split(" | ")]
    descrs = split(DESCRS, True)
    shapes = [form.strip("\n") for form in SHAPES.replace(")\n(", ") | (").split(" | ")]
    entries = {"D": "'descr': '<i4'", "F": "'fortran_order': False", "S": "'shape': (2,)"}
    for version in (1, 3):
        for descr in descrs:
            yield f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}", version, True
        for shape in shapes:
            yield f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}", version, True
        for text in TEXTS:
            yield "".join(entries.get(char, char) for char in text), version, True


def repr_of(text):
    """The text of the same dictionary as `repr` writes it, in the spaces of np.save; None for no dictionary."""
    try:
        return repr(ast.literal_eval(text))[:-1] + ", }"
    except (SyntaxError, ValueError):
        return None


def is_unwritten(descr):
    """Whether np.save does not write this type: it has commas or counts, or a title that is no string."""
    if isinstance(descr, str):
        return "," in descr or descr.lstrip("<>=|")[:1] in set("(0123456789")
    if isinstance(descr, tuple):
        return bool(descr) and is_unwritten(descr[0])
    fields = [field for field in descr if isinstance(field, (tuple, list)) and len(field) > 1] if isinstance(descr, list) else []
    is_odd = lambda name: isinstance(name, tuple) and bool(name) and not isinstance(name[0], (str, type(None)))
    return any(is_odd(field[0]) or is_unwritten(field[1]) for field in fields)


def has_unwritten_type(text):
    try:
        return is_unwritten(ast.literal_eval(text)["descr"])
    except (SyntaxError, ValueError, KeyError, TypeError):
        return False


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 1000).parse_args()
    harness.begin(options)
    rng = random.Random(options.seed)
    odd = [rng.random() < 0.3 for _ in range(options.count)]
    cases = [*fixed(), *((random_header(rng, it), rng.choice([1, 1, 2, 3]), it) for it in odd)]
    passed = failed = taken = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.npy")
        for text, version, is_odd in cases:
            data = header(text, version) + DATA
            with open(path, "wb") as file:
                file.write(data)
            wanted = by_numpy(data)
            run = harness.tslice(path)
            got = run.stdout if run.returncode == 0 else None
            taken += wanted is not None
            may_refuse = is_odd and text != repr_of(text) or has_unwritten_type(text)
            refused += wanted is not None and got is None
            if (got == wanted or got is None and may_refuse) and (got is not None or run.returncode == 1):
                passed += 1
                continue
            failed += 1
            print(f"FAILED version {version}: {text!r}\n  NumPy {'takes' if wanted else 'refuses'} it, "
                  f"status {run.returncode}, {run.stderr.decode()!r}")
    print(f"headers: seed {options.seed}, NumPy {np.__version__}, {taken} of {len(cases)} taken by np.load, {refused} of these refused")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
