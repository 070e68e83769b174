"""Parts of the build that need no compiler: the scan of sources, flags, ninja's file."""

from __future__ import annotations

import pytest

from utils.build import (
    flags,
    ninja_file,
    pch,
    scan,
)


def test_macro_uses_know_comments_strings_and_conditions() -> None:
    text = """
// M(comment)
/* M(block
   comment) */
const char* s = "M(string)";
auto r = R"x(M(raw))x"; int big = 1'000'000; char c = '"';
#define M(x) x
#ifdef A
M(conditional)
#endif
M(real, f(1, 2));
"""
    found = [(use.arguments, use.line, use.conditional) for use in scan.macro_uses(text, "M")]
    assert found == [("conditional", 9, True), ("real, f(1, 2)", 11, False)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", "types"),
        (
            "#pragma once\n#include <vector>\n#include <torch/csrc/utils/pybind.h>\n#include <torch/types.h>\nint x;",
            "types",
        ),
        ("#include <torch/extension.h>\n", "types"),
        ("#include <torch/types.h>\n", ""),
        (
            "#include <ATen/core/Tensor.h>\n#include <c10/cuda/CUDAGuard.h>\n#include <torch/csrc/utils/pybind.h>\n",
            "tensor",
        ),
        ("#include <ATen/core/Tensor.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ('#include "../binding_registry.h"\n', ""),
        ("#define TORCH_ASSERT_NO_OPERATORS\n#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ("#if X\n#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n#endif\n", ""),
        ("int x;\n#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ("//#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n", ""),
        ("", ""),
    ],
)
def test_precompiled_header_only_where_it_changes_nothing(text: str, kind: str) -> None:
    assert pch.fitting(text) == kind


# Flags


def test_bindings_get_the_options_of_gcc_from_gcc_alone() -> None:
    gnu, other = flags.binding_flags(gnu=True), flags.binding_flags(gnu=False)
    assert [each for each in gnu if each.startswith("-O")] == ["-Og"]
    assert [each for each in other if each.startswith("-O")] == ["-O1"]
    assert not {"--param", "-ftree-sra", "-finline-functions-called-once"} & set(other)


def test_ninja_escapes() -> None:
    assert ninja_file.escape_path("a b:$c") == "a$ b$:$$c"
    step = ninja_file.Step("out file", ("in $x",), ("cc", "a b", "$y", "it's"), "cc in", ("dep:1",), "d")
    text = ninja_file.text([step], "build")
    assert "build out$ file: step_with_headers in$ $$x | dep$:1" in text
    assert "step_command = cc 'a b' '$$y' 'it'\"'\"'s' > 'out file.log' 2>&1" in text


def test_depfiles_are_read_back() -> None:
    text = "o: a.cu \\\n  dir\\ with\\ space/b.h $$c.h \\\n hash\\#.h\n"
    assert ninja_file.headers_of(text) == ["a.cu", "dir with space/b.h", "$c.h", "hash#.h"]
    assert ninja_file.headers_of("") == []
