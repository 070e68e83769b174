"""Builds the root workspace's module with pip or setuptools, for those who would rather install it.

    pip install --no-build-isolation .         builds against the torch already installed
    python setup.py build_ext --inplace        puts the module into the repository

Sources, flags and architectures (TORCH_CUDA_ARCH_LIST) are those of `bash utils/compile.sh`, which is faster, explains
failures, and builds what the commands of the workbench judge.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from utils.build import flags, preflight  # noqa: E402
from utils.build.builder import facts_source, record_facts  # noqa: E402
from utils.build.digest import sources_digest  # noqa: E402
from utils.build.importing import try_import  # noqa: E402
from utils.build.plan import Memory, Plan, make_plan  # noqa: E402
from utils.build.toolchain import MODULE  # noqa: E402
from utils.present.outcome import CannotTell  # noqa: E402
from utils.problem.workspace import find_workspace  # noqa: E402

# torch's extension builder switches half precision arithmetic off; compile.sh does not.
HALF_ON = [
    "-U__CUDA_NO_HALF_OPERATORS__",
    "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_HALF2_OPERATORS__",
    "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
]


def shown(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else str(path)


def checked_plan() -> Plan:
    """The plan of compile.sh, with its refusals; and one of setuptools, which names objects by stem alone."""
    workspace = find_workspace()
    try:
        plan = make_plan(workspace, Memory())
    except CannotTell as error:
        sys.exit(f"error: {error}")
    failures, _ = preflight.check(workspace, plan.sources, shown)
    if failures:
        sys.exit("\n".join(line for failure in failures for line in failure.lines()))
    first: dict[str, Path] = {}
    for path in plan.sources.own:
        twin = first.setdefault(path.stem, path)
        if twin != path:
            sys.exit(f"error: {shown(twin)} and {shown(path)} would make one object file; rename one or use compile.sh")
    return plan


def extension(plan: Plan) -> Extension:
    facts = ROOT / "build/pip/facts.cpp"
    facts.parent.mkdir(parents=True, exist_ok=True)
    facts.write_text(facts_source(plan.facts(sources_digest(plan.workspace))))
    sources = [plan.sources.entry, *plan.sources.own, facts]
    own = flags.own_include_flags(flags.own_include_folders(plan.workspace))
    return Extension(
        MODULE,
        [shown(path) for path in sources],
        include_dirs=[str(folder) for folder in flags.system_include_folders(plan.torch, plan.nvcc)],
        extra_compile_args={
            # Registrations are shown by their place in the repository.
            "cxx": [*flags.helper_flags(), f"-fmacro-prefix-map={ROOT}/=", *own],
            "nvcc": [*flags.nvcc_flags(plan.architectures), *HALF_ON, *own],
        },
        extra_link_args=flags.library_flags(plan.libraries),
        language="c++",
    )


PLAN = checked_plan()
# Read when torch's builder is imported.
os.environ["CUDA_HOME"] = str(PLAN.nvcc.root)

from torch.utils.cpp_extension import BuildExtension  # noqa: E402


class CheckedBuild(BuildExtension):
    """torch's builder, then an import of the module: undefined symbols and the registry's refusals end the build."""

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        module = Path(self.get_ext_fullpath(ext.name)).resolve()
        failure = try_import(PLAN.torch.python, module, ROOT).failure
        if failure:
            module.unlink(missing_ok=True)
            sys.exit("\n".join(failure.lines()))

    def run(self) -> None:
        super().run()
        if self.inplace:
            # What the commands of the workbench read to see that the module is of the present sources.
            record_facts(PLAN.workspace, PLAN.module, PLAN.facts(sources_digest(PLAN.workspace)))


setup(
    name="cuda-extension",
    version="1.0",
    description="The CUDA kernels of this workspace as one Python module",
    python_requires=">=3.10",
    packages=[],
    py_modules=[],
    ext_modules=[extension(PLAN)],
    cmdclass={"build_ext": CheckedBuild},
)
