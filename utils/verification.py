"""`python -m utils.verification`: does ModelNew compute the same function as Model, within the rules?

Exit 0: yes. Exit 1: no, or a rule is broken. Exit 2: cannot tell.
"""

import os
import sys

# `python -m` puts the current folder first on the path: a torch.py lying there would become torch. Nothing is imported
# from there or from the repository but this package, which is found already.
_NOT_SEARCHED = {"", os.getcwd(), __file__.rsplit("/", 2)[0]}
sys.path[:] = [entry for entry in sys.path if entry not in _NOT_SEARCHED]

import argparse  # noqa: E402
from collections.abc import Sequence  # noqa: E402

from utils.present.options import count, positive, seed, tolerance  # noqa: E402
from utils.present.outcome import NO, YES, CannotTell, run  # noqa: E402


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m utils.verification",
        description="Does ModelNew compute the same function as Model, within the rules?",
    )
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="folder with model.py, model_new.py and kernels/ (default: the repository root)",
    )
    parser.add_argument("--problem", metavar="FILE", help="problem file (default: the workspace's model.py)")
    parser.add_argument("--solution", metavar="FILE", help="solution file (default: the workspace's model_new.py)")
    parser.add_argument("--device", help="cuda, cuda:N, cpu or sim (default: cuda where there is a GPU, else sim)")
    parser.add_argument(
        "--atol", type=tolerance, default=1e-2, help="absolute tolerance per element (default: %(default)s)"
    )
    parser.add_argument(
        "--rtol", type=tolerance, default=1e-2, help="relative tolerance per element (default: %(default)s)"
    )
    parser.add_argument("--trials", type=count, default=5, help="draws of weights and inputs (default: %(default)s)")
    parser.add_argument(
        "--seed", type=seed, help="replays an earlier run (default: drawn from the operating system, and recorded)"
    )
    parser.add_argument("--train", action="store_true", help="both models in train mode (default: eval mode)")
    parser.add_argument(
        "--timeout",
        type=positive,
        default=60.0,
        metavar="S",
        help="seconds that one call may take (default: %(default)s)",
    )
    parser.add_argument(
        "--memory-limit",
        type=positive,
        metavar="GIB",
        help="host memory of the solution in GiB (default: nine tenths of the machine's)",
    )
    parser.add_argument(
        "--rules", choices=("strict", "relaxed"), default="strict", help="relaxed turns policy rules into warnings"
    )
    parser.add_argument(
        "--no-sandbox", action="store_true", help="only a process of its own for the solution, for debugging"
    )
    parser.add_argument("--require-sandbox", action="store_true", help="fail when a layer of the sandbox cannot be had")
    parser.add_argument("--json", metavar="FILE", help="write the record with every measured number")
    parser.add_argument(
        "--note", metavar="TEXT", help="what you expect of this version; kept in the workspace's history"
    )
    parser.add_argument("--verbose", action="store_true", help="also the solution's output, sandbox layers and times")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """Verifies, prints the tables and the verdict, writes the record."""
    options = arguments(argv)
    if options.no_sandbox and options.require_sandbox:
        raise CannotTell("--no-sandbox and --require-sandbox contradict each other; give one")
    from utils.judge.clock import Clock, process_begun
    from utils.judge.verify import Request, verify
    from utils.present import console, record

    request = Request(
        workspace=options.workspace,
        problem=options.problem,
        solution=options.solution,
        device=options.device,
        atol=options.atol,
        rtol=options.rtol,
        trials=options.trials,
        seed=options.seed,
        train=options.train,
        timeout=options.timeout,
        memory_limit=int(options.memory_limit * 2**30) if options.memory_limit else None,
        rules=options.rules,
        sandbox=not options.no_sandbox,
        require_sandbox=options.require_sandbox,
    )
    with console.progress("verifying") as status:
        done = verify(request, status.update if status is not None else lambda text: None, clock=Clock(process_begun()))
    from utils import history
    from utils.judge import report

    written = report.envelope(request, done)
    if options.json:
        record.write(options.json, written)
    report.show(done, options.verbose)
    workspace = done.solution.workspace
    unkept = history.append(workspace.root if workspace else done.solution.path.parent, written, options.note)
    if unkept:
        console.say(unkept, "warn")
    return YES if done.passed else NO


if __name__ == "__main__":
    run(main)
