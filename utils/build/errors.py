"""The compilers' output explained: the first true error of a failed file, what it means and what to do.

A log may hold hundreds of lines that follow from one mistake. The first error is taken by the formats of g++, clang,
nvcc's front end and ptxas; a table then says what the usual ones mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from utils.build.failures import Failure

# path:line:column: error: ...      g++, clang, and #error of either
_HOST = re.compile(r"^(?P<file>[^\s:][^:\n]*?):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<message>.+)$")
# path(line): error: ...            nvcc's front end
_DEVICE = re.compile(r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?:catastrophic )?error(?: #[\w-]+)?: (?P<message>.+)$")
# ptxas and nvcc themselves, and drivers of g++: no place in the source
_TOOL = re.compile(
    r"^(?P<message>(?:ptxas|nvcc|nvlink|fatbinary|cicc|cudafe\+\+)\b.*?(?:error|fatal)\s*:.*"
    r"|nvcc (?:error|fatal)\s.*"
    r"|\S*(?:g\+\+|gcc|c\+\+|cc1plus|clang\S*|collect2|ld|as)(?:-\d+)?: (?:fatal )?(?:error|internal compiler error).*"
    r"|sh: \d+: .*|.*\bKilled\b.*|virtual memory exhausted.*|.*[Nn]o space left on device.*|terminate called after.*)$"
)


@dataclass(frozen=True)
class _Hint:
    pattern: re.Pattern[str]
    meaning: str
    remedy: str


def _hint(pattern: str, meaning: str, remedy: str) -> _Hint:
    return _Hint(re.compile(pattern, re.I), meaning, remedy)


MEMORY = _hint(
    r"\bKilled\b|signal 9\b|died due to signal|signal terminated|virtual memory exhausted|cannot allocate memory"
    r"|std::bad_alloc|out of memory allocating",
    "a compiler was killed, almost always because the machine ran out of memory.",
    "build with fewer compilers at once: MAX_JOBS=1 bash utils/compile.sh",
)

HINTS = [
    MEMORY,
    _hint(
        r"no space left on device",
        "the disk (or the folder for temporary files) is full.",
        "free some space, then build again.",
    ),
    _hint(
        r"unsupported (GNU|clang|Microsoft)[\w ]* version",
        "the C++ compiler is newer than this nvcc accepts.",
        "name an older one: CXX=g++-12 (and NVCC_CCBIN=g++-12 for nvcc alone; CC for C), or use a newer CUDA toolkit.",
    ),
    _hint(
        r"Unsupported gpu architecture",
        "this nvcc does not know the architecture asked for.",
        "set TORCH_CUDA_ARCH_LIST to one it lists (nvcc --list-gpu-arch), or use another CUDA toolkit.",
    ),
    _hint(
        r"redefinition of '.*binding_registration_of_(\w+)'",
        "REGISTER_BINDING has the same name twice in this file.",
        "give each registration of the file its own name.",
    ),
    _hint(
        r"(cannot open source file|No such file or directory).*|(\S+: No such file or directory)",
        "a header was not found. Searched: the file's folder, the workspace's kernels/, the repository's kernels/ and "
        "root, torch, CUDA, cuDNN.",
        "check the spelling; your own headers belong in kernels/ or kernels/common/.",
    ),
    _hint(
        r"no operator \"?.*matches these operands|no suitable (user-defined )?conversion",
        "this operation does not exist for these types. Half and bfloat16 arithmetic is on here (torch's "
        "-D__CUDA_NO_HALF_OPERATORS__ is not used), so types of two kinds are mixed, or their header is missing.",
        "include <cuda_fp16.h> or <cuda_bf16.h> and convert on purpose: __half2float, __float2half, ...",
    ),
    _hint(
        r"not supported on \.target|requires.*\.target|instruction .* requires",
        "an instruction of this kernel does not exist on one of the architectures built for.",
        "build only for architectures that have it (9.0 is built as sm_90a), or guard it with #if __CUDA_ARCH__ ...",
    ),
    _hint(
        r"uses too much shared data",
        "a block may have 48 KB of static shared memory; the kernel declares more.",
        "use extern __shared__ memory and raise its limit with "
        "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes).",
    ),
    _hint(
        r"Unresolved extern function",
        "a __device__ function is declared here and defined in another .cu; each .cu is compiled on its own.",
        "put device functions that are shared into a header (kernels/common/<name>.cuh).",
    ),
    _hint(
        r"calling a __host__ .*function.*from a __(device|global)__",
        "a function that exists only on the CPU is called on the GPU.",
        "mark it __device__ (or __host__ __device__), or use CUDA's own function.",
    ),
    _hint(
        r"conflicting declaration|linkage specification is incompatible",
        'one name has two different declarations here: signatures differ, or extern "C" stands on one side only.',
        "make declaration and definition the same.",
    ),
    _hint(
        r"[‘'\"]py[’'\"] (has not been declared|was not declared|is not a namespace)|undeclared identifier 'py'",
        "the namespace alias py comes with pybind11's headers.",
        'include <torch/csrc/utils/pybind.h> or "../binding_registry.h" above its first use.',
    ),
    _hint(
        r"REGISTER_BINDING.*was not declared|expected constructor, destructor, or type conversion before",
        "REGISTER_BINDING is a macro of binding_registry.h.",
        'put #include "../binding_registry.h" above it.',
    ),
    _hint(
        r"(identifier|name) \"?torch\"? is undefined|name followed by \"::\" must be a class or namespace",
        "a .cu file has no torch headers, on purpose: it compiles in a second instead of a minute.",
        "take raw pointers and sizes in the launcher; handle tensors in the _binding.cpp file.",
    ),
    _hint(
        r"expected (a |an )?[\"'‘]?(;|\)|\}|declaration|expression|identifier|unqualified-id|initializer|primary-exp)"
        r"|expected [‘']",
        "the syntax breaks at or just above this place.",
        "look at this line and the end of the one above it.",
    ),
    _hint(
        r"is undefined|was not declared in this scope|has not been declared|undeclared identifier",
        "the name is not known here: misspelt, declared further down, or its header is not included.",
        "declare it above, or include its header.",
    ),
    _hint(
        r"unrecognized command|unknown option|unrecognized option",
        "the compiler does not know a flag of the build.",
        "use the g++ that your distribution provides with CUDA (CXX=g++), and nvcc of torch's CUDA version.",
    ),
    _hint(
        r"internal compiler error|Segmentation fault",
        "the compiler itself failed.",
        "build again; if it stays, simplify the code at this place or use another compiler version.",
    ),
]


def first_error(log: str) -> Failure | None:
    """The first error in a compiler's output, with the lines that belong to it; None when nothing looks like one."""
    lines = log.splitlines()
    tool: Failure | None = None
    for number, line in enumerate(lines):
        match = _HOST.match(line) or _DEVICE.match(line)
        if match:
            place = f"{match['file']}:{match['line']}"
            return Failure(match["message"].strip(), place, detail=_detail(lines, number, match["file"]))
        if tool is None and _TOOL.match(line):
            tool = Failure(line.strip())
    return tool


def _detail(lines: list[str], number: int, file: str) -> str:
    """The source line with its caret, and from where a header of others was used."""
    kept = []
    for line in lines[number + 1 : number + 6]:
        if _HOST.match(line) or _DEVICE.match(line) or not line.strip() or not line.startswith((" ", "\t")):
            break
        kept.append(line.rstrip()[:200])
        if set(line.strip()) <= set("^~|123456789 "):
            break
    used_from = ""
    if not file.startswith(("kernels/", "binding")):
        around = [*lines[max(0, number - 40) : number], *lines[number + 1 : number + 40]]
        match = next(
            (found for line in around if (found := re.search(r"(?<![\w/])(kernels/[^\s:()]+)[:(](\d+)", line))), None
        )
        used_from = f"used from {match[1]}:{match[2]}" if match else ""
    return "\n".join(([used_from] if used_from else []) + kept)


def explained(failure: Failure, log: str = "") -> Failure:
    """`failure` with meaning and remedy where the table knows it; `log` is searched for a compiler that was killed."""
    if MEMORY.pattern.search(failure.message) or MEMORY.pattern.search(log):
        return replace(failure, meaning=MEMORY.meaning, remedy=MEMORY.remedy)
    for hint in HINTS:
        if hint.pattern.search(failure.message) or hint.pattern.search(failure.detail):
            return replace(failure, meaning=hint.meaning, remedy=hint.remedy)
    return failure


def compile_failure(title: str, source: str, log: str, code: int | None) -> Failure:
    """What stopped the compilation of `source`; `title` names the step, `code` is its exit status where known."""
    found = first_error(log)
    if found is None:
        said = [line for line in log.splitlines() if line.strip()]
        words = said[-1].strip()[:300] if said else "the compiler said nothing"
        if code in (137, -9):
            return Failure(f"{title} was killed", source, MEMORY.meaning, MEMORY.remedy, words if said else "")
        status = f" (exit status {code})" if code is not None else ""
        return explained(Failure(f"{title} failed{status}: {words}", source))
    if not found.place:
        found = replace(found, place=source)
    return explained(found, "" if found.place != source else log)
