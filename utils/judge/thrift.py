"""How much memory a verification may take, when problems come close to filling the device."""

from __future__ import annotations

from enum import IntEnum

# Copies that exist at once at the worst moment, over both processes, as (of the inputs, of the outputs).
_COPIES = {0: (7, 10), 1: (6, 7)}


class Thrift(IntEnum):
    """What is done without.

    NONE     nothing
    DEVICE   late delivery, moved inputs, results held over calls, fp64, answers to other inputs and weights; and idle
             caches are given back
    HOST     and values that wait for their call lie on the host, from where they take seconds to come
    """

    NONE = 0
    DEVICE = 1
    HOST = 2

    @property
    def next(self) -> Thrift:
        """One step thriftier, if there is one."""
        return Thrift(min(self + 1, Thrift.HOST))


def needed(thrift: Thrift, inputs: int, outputs: int) -> int:
    """Bytes that copies take at the worst moment, where one copy of inputs and of outputs takes so many."""
    of_inputs, of_outputs = _COPIES[thrift]
    return of_inputs * inputs + of_outputs * outputs


def enough(inputs: int, outputs: int, room: int, least: Thrift = Thrift.NONE) -> Thrift:
    """The least thrift, from `least` on, with which everything fits into `room` bytes."""
    for thrift in (Thrift.NONE, Thrift.DEVICE):
        if thrift >= least and needed(thrift, inputs, outputs) <= room:
            return thrift
    return Thrift.HOST
