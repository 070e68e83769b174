"""The linker's output explained: symbols defined nowhere, or twice, in terms of the sources they come from."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.build.errors import compile_failure
from utils.build.failures import Failure
from utils.build.functions import Function

# "undefined reference to `x'" (GNU ld), "undefined reference to 'x'" (gold), "undefined symbol: x" (lld)
_UNDEFINED = re.compile(r"undefined reference to [`'‘](.+)['’]$|undefined symbol: (.+)$")
_OBJECT = re.compile(r"(build/obj/[^:()]+?)\.o\b")
_TWICE = re.compile(r"multiple definition of [`'‘](.+?)['’]|duplicate symbol: (.+)$")
# Python's own symbols come from the interpreter that loads the module.
_PYTHON = re.compile(r"_?Py(?:[A-Z]|_)\w*$")


@dataclass(frozen=True)
class Undefined:
    """A symbol that no object and no library defines, as the linker shows it, and the object that wants it."""

    symbol: str
    object: str


def undefined_symbols(log: str) -> list[Undefined]:
    """The undefined symbols in a link's output, each once, without those of the Python interpreter."""
    found: dict[str, Undefined] = {}
    above = symbol = ""
    for line in log.splitlines():
        named = _OBJECT.search(line)
        match = _UNDEFINED.search(line)
        if match:
            symbol = next(each for each in match.groups() if each).strip()
            if not _PYTHON.match(symbol):
                found.setdefault(symbol, Undefined(symbol, named[1] if named else above))
        elif line.startswith(">>>"):
            # lld names the object after the symbol.
            if named and symbol in found and not found[symbol].object:
                found[symbol] = Undefined(symbol, named[1])
        elif named and "in function" in line:
            # GNU ld names it once for all that follow.
            above = named[1]
    return list(found.values())


def doubled_symbols(log: str) -> dict[str, list[str]]:
    """The symbols in a link's output that are defined more than once, with the objects that define them."""
    found: dict[str, list[str]] = {}
    above: list[str] = []
    symbol = ""
    for line in log.splitlines():
        named = _OBJECT.findall(line)
        match = _TWICE.search(line)
        if match:
            symbol = next(each for each in match.groups() if each).strip()
            found.setdefault(symbol, []).extend([*above, *named])
        elif symbol and (line.startswith(">>>") or line.endswith("previous definition here")):
            found[symbol].extend(named)
        else:
            symbol = ""
        above = named if "in function" in line else []
    return found


def link_failures(log: str, functions: Sequence[Function], sources: Sequence[str]) -> list[Failure]:
    """What stopped the link, from the functions of the workspace's sources and the names of those."""
    failures = [_explain_undefined(each, functions, sources) for each in undefined_symbols(log)]
    failures += [_explain_twice(symbol, objects, functions) for symbol, objects in doubled_symbols(log).items()]
    return failures or [compile_failure("the link", "cuda_extension", log, None)]


def _base_name(symbol: str) -> str:
    """`ns::f(float*, int)` -> `f`"""
    return re.split(r"[(<]", symbol, maxsplit=1)[0].split("::")[-1].strip()


def _explain_undefined(undefined: Undefined, functions: Sequence[Function], sources: Sequence[str]) -> Failure:
    symbol, source = undefined.symbol, undefined.object.removeprefix("build/obj/")
    c_linkage = "(" not in symbol
    name = _base_name(symbol)
    same_name = [each for each in functions if each.name == name]
    declared = next((each for each in same_name if not each.defined and each.file == source), None)
    declared = declared or next((each for each in same_name if not each.defined), None)
    defined = next((each for each in same_name if each.defined and not each.local), None)
    place = declared.place if declared else source
    message = (
        f"{symbol} is declared here and defined nowhere" if declared else f"{symbol} is used here and defined nowhere"
    )

    if defined and c_linkage and not defined.c_linkage:
        return Failure(
            f'{name} is declared extern "C" here, but defined without it in {defined.place}',
            place,
            'extern "C" stands on one side only: the two names differ for the linker.',
            f'write extern "C" before the definition in {defined.file} too.',
        )
    if defined and not c_linkage and defined.c_linkage:
        return Failure(
            f'{name} is defined extern "C" in {defined.place}, but declared without it here',
            place,
            'extern "C" stands on one side only: the two names differ for the linker.',
            f'write extern "C" before the declaration in {source or place} too.',
        )
    if defined and not c_linkage:
        return Failure(
            f"{symbol} is declared here; {defined.place} defines {defined.signature}",
            place,
            "the signatures of the two sides differ, so they are two functions for the linker.",
            "make the declaration the same as the definition.",
        )
    library = _library_hint(name, symbol)
    if library and not declared:
        return Failure(f"{symbol} is used here and in no library of the build", place, *library)
    return Failure(message, place, *_nowhere(name, source, functions, sources))


def _nowhere(name: str, source: str, functions: Sequence[Function], sources: Sequence[str]) -> tuple[str, str]:
    stem = Path(source).name
    if stem.endswith("_binding.cpp"):
        pair = stem.removesuffix("_binding.cpp")
        folder = Path(source).parent.as_posix()
        if not any(Path(each).name in (f"{pair}.cu", f"{pair}.cpp") for each in sources):
            return (
                f"the pair of this file is missing: there is no {folder}/{pair}.cu.",
                f"add {folder}/{pair}.cu with the definition of {name}.",
            )
    defined = sorted({each.name for each in functions if each.defined and each.c_linkage and not each.local})
    close = difflib.get_close_matches(name, defined, 1, 0.75)
    if close:
        twin = next(each for each in functions if each.defined and each.name == close[0])
        return f"a similar name is defined: {twin.name} in {twin.place}.", "use the same spelling on both sides."
    known = f" (defined there: {', '.join(defined[:6])})" if defined else ""
    return (
        "no source of kernels/ defines it.",
        f'define it in a .cu of kernels/ as extern "C"{known}, or remove what calls it.',
    )


def _library_hint(name: str, symbol: str) -> tuple[str, str] | None:
    if re.match(r"(at|c10|torch|caffe2)::", symbol) or symbol.startswith(("vtable for at::", "vtable for c10::")):
        return (
            "this torch does not have it: declared in a header but not exported, or of another version.",
            "use another function of torch's C++ API; check the signature in its headers.",
        )
    if re.match(r"cudnn[A-Z]", name):
        return (
            "cuDNN was not found, or is another version than its header.",
            "install the cuDNN that belongs to torch (nvidia-cudnn wheel).",
        )
    for prefix, library in (
        ("cufft", "cuFFT"),
        ("curand", "cuRAND"),
        ("cusolver", "cuSOLVER"),
        ("cusparse", "cuSPARSE"),
        ("nccl", "NCCL"),
    ):
        if name.startswith(prefix):
            return (
                f"{library} is not linked: a solution uses cuBLAS, cuDNN and raw CUDA only.",
                "write the kernel by hand.",
            )
    if re.match(r"cu[A-Z]", name):
        return (
            "the driver's library is not linked, so that the module can be loaded without a GPU.",
            f'get the function at run time: cudaGetDriverEntryPoint("{name}", ...).',
        )
    return None


def _explain_twice(symbol: str, objects: Sequence[str], functions: Sequence[Function]) -> Failure:
    name = _base_name(symbol)
    places = [each.place for each in functions if each.name == name and each.defined]
    files = list(dict.fromkeys(places or (each.removeprefix("build/obj/") for each in objects)))
    return Failure(
        f"{symbol} is defined in more than one file: {', '.join(files)}",
        files[-1] if files else "",
        "the linker takes one definition of each name.",
        "delete the file that is an old attempt, rename one of the functions, or make it static (in a header: inline).",
    )
