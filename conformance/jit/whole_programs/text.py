"""Strings, formatting and printing."""

from typing import Dict, List, Tuple

import torch
from torch import Tensor


def tokens(text: str) -> Tuple[List[str], Dict[str, int], str]:
    counts: Dict[str, int] = {}
    words = text.lower().strip().split(" ")
    for word in words:
        word = word.strip(".,!")
        if len(word) == 0:
            continue
        if word in counts:
            counts[word] += 1
        else:
            counts[word] = 1
    longest = ""
    for word in counts.keys():
        if len(word) > len(longest) or (len(word) == len(longest) and word < longest):
            longest = word
    return words, counts, longest


def formatted(name: str, n: int, x: float, flags: List[bool]) -> List[str]:
    return [
        f"{name} has {n} of {x}",
        "{} has {} of {}".format(name, n, flags),
        "%s: %d, %s" % (name, n, x),
        "-".join([name, str(n), str(x)]),
        name + "\n" + str(flags),
    ]


def queries(s: str) -> Tuple[List[bool], List[int], List[str]]:
    booleans = [
        s.startswith("a"), s.endswith("z"), s.isdigit(), s.isalpha(), s.isupper(), s.islower(),
        s.isspace(), s.isalnum(), s.istitle(), "b" in s, s == "abc", s != "abc", s < "m",
    ]  # fmt: skip
    numbers = [s.find("b"), s.rfind("b"), s.count("b"), len(s), len(s.splitlines())]
    texts = [
        s.upper(), s.capitalize(), s.title(), s.swapcase(), s.replace("b", "--"), s.center(9, "*"),
        s.ljust(7), s.rjust(7, "."), s.zfill(8), s.lstrip("a"), s.rstrip(), s[::-1], s[1:], s[-2:],
        s.expandtabs(4), s.partition("b")[2], s.rpartition("b")[0],
    ]  # fmt: skip
    return booleans, numbers, texts


def printed(x: Tensor, values: List[int], table: Dict[str, float], pair: Tuple[int, str]) -> int:
    print("start")
    print("values", values, table)
    print(pair, True, None, 1.0, 1e-7, 3 == 4)
    for i in range(2):
        print(i, x.size(), x.dtype == torch.float32)
    print(x.int())
    return len(values)


def letters(s: str) -> Tuple[List[int], str, str]:
    codes = [ord(c) for c in s]
    shifted = ""
    for code in codes:
        shifted += chr(code + 1)
    return codes, shifted, hex(len(s) + 20) + oct(9) + bin(5)


def parsed(fields: List[str]) -> Tuple[List[int], List[float], float]:
    integers = [int(field) for field in fields]
    numbers = [float(field) for field in fields]
    return integers, numbers, numbers[0] + float("inf")


PROGRAMS = {
    "tokens": (tokens, [("The cat saw the dog.  The end!",), ("",), ("a bb, cc",)]),
    "formatted": (
        formatted,
        [("x", 3, 2.5, [True, False]), ("", -1, 1e20, []), ("y", 0, 0.1, [True])],
    ),
    "queries": (queries, [("abc",), ("",), ("12",), ("Ab\tcB z",), ("  \n",), ("bob\nbab",)]),
    "printed": (printed, [(torch.ones(2), [1, 2], {"a": 0.5, "b": 2.0}, (3, "t"))]),
    "letters": (letters, [("abc",), ("",)]),
    "parsed": (parsed, [(["1", "20"],), (["-3"],), (["x"],)]),
}
