"""The registry and the fixed entry: what a module says of itself, and what it refuses at import, with both places.

Modules are linked here directly from binding.cpp and small bindings, without the build, whose preflight would find some
of these mistakes first.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
FACTS = {"architectures": ["9.0a"], "quote": '"??/'}


class Linker:
    """Compiles sources, each once in a session, and links them into a module."""

    def __init__(self, folder: Path, flags: list[str]) -> None:
        self.folder = folder
        self.flags = flags
        header = folder / "pch.h"
        header.write_text('#include "binding_registry.h"\n#include <algorithm>\n#include <vector>\n')
        self.run("-x", "c++-header", str(header), "-o", f"{header}.gch")
        self.entry = self.compile("entry", (ROOT / "binding.cpp").read_text())
        from utils.build.builder import facts_source

        self.facts = self.compile("facts", facts_source(FACTS))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            "g++",
            "-std=c++17",
            "-O0",
            "-fPIC",
            "-fvisibility=hidden",
            "-Wall",
            "-Werror",
            *self.flags,
            *arguments,
        ]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120)

    def compile(self, name: str, text: str) -> str:
        (self.folder / f"{name}.cpp").write_text(text)
        done = self.run("-include", "pch.h", "-c", f"{name}.cpp", "-o", f"{name}.o")
        assert done.returncode == 0, done.stderr
        return f"{name}.o"

    def module(self, target: Path, *objects: str) -> Path:
        target.mkdir(parents=True, exist_ok=True)
        module = target / f"cuda_extension{SUFFIX}"
        done = self.run("-shared", self.entry, self.facts, *objects, "-o", str(module))
        assert done.returncode == 0, done.stderr
        return module


@pytest.fixture(scope="session")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Linker:
    from utils.build.toolchain import find_python_torch

    torch = find_python_torch()
    folders = [ROOT, torch.root / "include", torch.python_include]
    return Linker(tmp_path_factory.mktemp("registry"), [f"-I{folder}" for folder in folders])


def registration(name: str, body: str, function: str | None = None) -> str:
    function = function or f"reg_{name}"
    return (
        f'#include "binding_registry.h"\nvoid reg_{name}(pybind11::module& m) {{ {body} }}\n'
        f"REGISTER_BINDING({name}, {function});\n"
    )


@pytest.fixture(scope="session")
def objects(linker: Linker) -> dict[str, str]:
    """Bindings to link in all combinations."""
    sources = {
        "alpha": registration("alpha", 'm.def("f", [](int x) { return x + 1; }, "adds one", py::arg("x") = 1);'),
        "beta": registration(
            "beta", 'm.def("g", [](int) { return 1; }); m.def("g", [](double) { return 2; }); m.attr("limit") = 3;'
        ),
        "alpha_again": registration("alpha", 'm.def("h", [] {});').replace("reg_", "static_reg_"),
        "same_python_name": registration("gamma", 'm.def("f", [](double x) { return x; });'),
        "null": registration("nothing", "", "nullptr"),
        "lambda": '#include "binding_registry.h"\n'
        "REGISTER_BINDING(inline_one, [](pybind11::module& m) { int a = 1, b = 2; "
        'm.attr("sum") = a + b; });\n',
        "throwing": registration("bad", 'throw std::runtime_error("out of luck");'),
        "throwing_python": registration("bad_python", 'pybind11::module_::import("no_such_module");'),
        "throwing_int": registration("bad_int", "throw 7;"),
        "type_one": "struct Config { int tile; };\n" + registration("one", 'pybind11::class_<Config>(m, "Config");'),
        "type_two": "struct Config { int tile; };\n" + registration("two", 'pybind11::class_<Config>(m, "Settings");'),
        "takes_build": registration("thief", 'm.attr("__build__") = 1;'),
    }
    return {name: linker.compile(name, text) for name, text in sources.items()}


PROGRAM = """
import sys, types, json
sys.modules["torch"] = types.ModuleType("torch")
sys.path.insert(0, sys.argv[1])
try:
    import cuda_extension
except BaseException as error:
    print(json.dumps({"type": type(error).__name__, "text": str(error)}))
else:
    exec(sys.argv[2])
"""


def imported(linker: Linker, folder: Path, *names: str, program: str = "pass") -> str:
    module = linker.module(folder, *names)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(module.parent), program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"the interpreter did not survive: {done.returncode} {done.stderr}"
    return done.stdout


def refusal(linker: Linker, folder: Path, *names: str) -> str:
    answer = json.loads(imported(linker, folder, *names))
    assert answer["type"] == "ImportError"
    assert answer["text"].startswith("cuda_extension: ")
    return answer["text"]


def test_module_lists_kernels_facts_and_signatures(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    program = "c = cuda_extension; print(json.dumps([c.__kernels__, c.__build__, c.__doc__, c.f()]))"
    kernels, build, doc, result = json.loads(
        imported(linker, tmp_path, objects["beta"], objects["alpha"], program=program)
    )
    assert kernels == {
        "alpha": {"file": "alpha.cpp", "line": 3, "functions": ["f"]},
        "beta": {"file": "beta.cpp", "line": 3, "functions": ["g", "limit"]},
    }
    assert build == FACTS
    assert result == 2
    assert "alpha  (alpha.cpp:3)" in doc
    assert "f(x: " in doc
    assert doc.count("    g(") == 2, "an overloaded function shows each signature"


@pytest.mark.parametrize("turn", [1, -1])
def test_order_is_by_name_whatever_the_link_order(
    linker: Linker, objects: dict[str, str], tmp_path: Path, turn: int
) -> None:
    names = [objects["beta"], objects["lambda"], objects["alpha"]][::turn]
    program = "print(list(cuda_extension.__kernels__))"
    assert imported(linker, tmp_path, *names, program=program).strip() == "['alpha', 'beta', 'inline_one']"


def test_lambda_with_commas_registers(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    assert imported(linker, tmp_path, objects["lambda"], program="print(cuda_extension.sum)").strip() == "3"


def test_classes_and_functions_belong_to_the_module(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    program = "print(cuda_extension.Config.__module__, cuda_extension.f.__module__)"
    found = imported(linker, tmp_path, objects["type_one"], objects["alpha"], program=program)
    assert found.split() == ["cuda_extension", "cuda_extension"]


def test_empty_registry(linker: Linker, tmp_path: Path) -> None:
    assert "no kernel is registered" in refusal(linker, tmp_path)


def test_two_kernels_of_one_name(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    text = refusal(linker, tmp_path, objects["alpha"], objects["alpha_again"])
    assert "'alpha'" in text
    assert "alpha.cpp:3" in text
    assert "alpha_again.cpp:3" in text


def test_two_functions_of_one_python_name(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    """pybind11 alone would make the second an overload of the first."""
    text = refusal(linker, tmp_path, objects["alpha"], objects["same_python_name"])
    assert "Python name 'f'" in text
    assert "alpha.cpp:3" in text
    assert "same_python_name.cpp:3" in text


def test_null_function(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    text = refusal(linker, tmp_path, objects["alpha"], objects["null"])
    assert "'nothing' (null.cpp:3)" in text
    assert "null function" in text


def test_type_registered_twice_names_both(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    """C19"""
    text = refusal(linker, tmp_path, objects["type_one"], objects["type_two"], objects["alpha"])
    assert "registered twice" in text
    assert "type_one.cpp:4" in text
    assert "type_two.cpp:4" in text
    assert "alpha.cpp" not in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("throwing", "out of luck"),
        ("throwing_python", "no_such_module"),
        ("throwing_int", "not a std::exception"),
    ],
)
def test_exception_in_a_registration(
    linker: Linker, objects: dict[str, str], tmp_path: Path, name: str, words: str
) -> None:
    text = refusal(linker, tmp_path, objects["alpha"], objects[name])
    assert f"{name}.cpp:3" in text
    assert words in text


def test_names_of_the_module_cannot_be_taken(linker: Linker, objects: dict[str, str], tmp_path: Path) -> None:
    assert "'__build__'" in refusal(linker, tmp_path, objects["takes_build"])


def test_same_identifier_twice_in_one_file_does_not_compile(linker: Linker) -> None:
    twice = registration("alpha", "") + "REGISTER_BINDING(alpha, reg_alpha);\n"
    (linker.folder / "twice.cpp").write_text(twice)
    done = linker.run("-include", "pch.h", "-fsyntax-only", "twice.cpp")
    assert done.returncode != 0
    assert "redefinition of" in done.stderr
    assert "binding_registration_of_alpha" in done.stderr


def test_registration_cannot_throw_and_needs_no_construction_at_exit(linker: Linker) -> None:
    """What a registration may do before main is fixed by its types."""
    text = (
        '#include "binding_registry.h"\n#include <type_traits>\n'
        "using R = binding_registry::Registration;\n"
        "using F = binding_registry::RegisterFunction;\n"
        "static_assert(std::is_nothrow_constructible_v<R, const char*, F, const char*, int>);\n"
        "static_assert(std::is_trivially_destructible_v<R>);\n"
        "static_assert(!std::is_copy_constructible_v<R>);\n"
    )
    (linker.folder / "traits.cpp").write_text(text)
    done = linker.run("-include", "pch.h", "-fsyntax-only", "traits.cpp")
    assert done.returncode == 0, done.stderr
