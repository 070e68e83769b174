"""The process that imports a linked module: started early, told the module later, ended when there is none."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from utils.build.importing import Importer, try_import

MODULE = """
#include <Python.h>
#include <stdlib.h>
static struct PyModuleDef definition = {{PyModuleDef_HEAD_INIT, "cuda_extension", NULL, -1, NULL}};
PyMODINIT_FUNC PyInit_cuda_extension(void) {{
    {body}
}}
"""
REGISTERED = """
    PyObject* module = PyModule_Create(&definition);
    PyObject* kernels = Py_BuildValue("{s:{s:s}}", "scale", "file", "kernels/scale_binding.cpp");
    PyModule_AddObject(module, "__kernels__", kernels);
    return module;
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small modules by what they do when imported."""
    bodies = {
        "registers": REGISTERED,
        "refuses": 'PyErr_SetString(PyExc_ImportError, "cuda_extension: two kernels of one name"); return NULL;',
        "crashes": "abort();",
    }
    made = {}
    for name, body in bodies.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "module.c").write_text(MODULE.format(body=body))
        made[name] = folder / "cuda_extension.so"
        include = sysconfig.get_path("include")
        command = ["gcc", "-shared", "-fPIC", f"-I{include}", str(folder / "module.c"), "-o", str(made[name])]
        subprocess.run(command, check=True, timeout=120)
    return made


def test_told_the_module_after_its_start(modules: dict[str, Path], tmp_path: Path) -> None:
    nothing = tmp_path / "libnothing.so"
    with Importer(Path(sys.executable), tmp_path, [nothing, modules["registers"]]) as importer:
        time.sleep(0.2)
        imported = importer.load(modules["registers"])
    assert imported.failure is None
    assert imported.kernels == {"scale": {"file": "kernels/scale_binding.cpp"}}


def test_a_refusal_is_the_registry_s_own_sentence(modules: dict[str, Path], tmp_path: Path) -> None:
    failure = try_import(Path(sys.executable), modules["refuses"], tmp_path).failure
    assert failure is not None
    assert failure.message == "two kernels of one name"


def test_a_crash_is_called_one(modules: dict[str, Path], tmp_path: Path) -> None:
    failure = try_import(Path(sys.executable), modules["crashes"], tmp_path).failure
    assert failure is not None
    assert failure.message == "importing the module crashed (SIGABRT)"


def test_no_process_is_left_when_there_is_no_module(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Importer(Path(sys.executable), tmp_path) as importer:
        process = importer._process
        assert process.poll() is None
        raise KeyboardInterrupt
    assert process.poll() is not None
