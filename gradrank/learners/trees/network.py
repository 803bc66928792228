"""LightGBM's exchanges by connections of our own, instead of its sockets.

Its distributed learner needs two: reduce-scatter (each process gets its block of a sum) and all-gather. With ours a
lost process is noticed in seconds and by name, nothing listens on every interface without a secret, and bytes are
counted.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

_Size = ctypes.c_int32
_Sizes = ctypes.POINTER(_Size)
_Reducer = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, _Size)
_ReduceScatter = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, _Size, ctypes.c_int, _Sizes, _Sizes, ctypes.c_int, ctypes.c_void_p, _Size,
    ctypes.POINTER(ctypes.c_void_p),
)  # fmt: skip
_AllGather = ctypes.CFUNCTYPE(None, ctypes.c_void_p, _Size, _Sizes, _Sizes, ctypes.c_int, ctypes.c_void_p, _Size)


class Exchange(Protocol):
    """Gives each rank its part, and gets what each gave to this one."""

    def __call__(self, parts: Sequence[bytes | memoryview]) -> list[bytes | memoryview]: ...


class Network:
    """LightGBM's network in the thread that makes it; to be kept as long as LightGBM works there.

    Parameters
    ----------
    rank, size
        Number of this rank, and of all.
    exchange
        The exchange with the others.
    abandon
        Told of an error, which cannot be raised through LightGBM; does not return.
    """

    def __init__(self, rank: int, size: int, exchange: Exchange, abandon: Callable[[BaseException], Any]) -> None:
        from lightgbm.basic import _LIB, _safe_call

        def reduce_scatter(
            given: int, _size: int, width: int, starts: Any, lengths: Any, blocks: int, out: int, _out: int, how: Any
        ) -> None:
            try:
                parts = [_bytes_at(given + starts[block], lengths[block]) for block in range(blocks)]
                # Copies, since LightGBM may write its result where it gave its numbers.
                received = exchange([bytes(part) if block == rank else part for block, part in enumerate(parts)])
                reduce, length = _Reducer(how[0]), lengths[rank]
                summed = (ctypes.c_char * length).from_buffer_copy(received[0])
                for part in received[1:]:
                    own = (ctypes.c_char * length).from_buffer_copy(part)
                    reduce(ctypes.addressof(own), ctypes.addressof(summed), width, length)
                ctypes.memmove(out, summed, length)
            except BaseException as error:
                abandon(error)

        def all_gather(
            given: int, size_given: int, starts: Any, lengths: Any, blocks: int, out: int, _out: int
        ) -> None:
            try:
                received = exchange([bytes(_bytes_at(given, size_given))] * blocks)
                for block, part in enumerate(received):
                    ctypes.memmove(out + starts[block], bytes(part), lengths[block])
            except BaseException as error:
                abandon(error)

        self._functions = (_ReduceScatter(reduce_scatter), _AllGather(all_gather))
        _safe_call(_LIB.LGBM_NetworkInitWithFunctions(size, rank, *self._functions))


class Strands:
    """Exchange between threads of this process.

    Parameters
    ----------
    size
        Number of threads.
    """

    def __init__(self, size: int) -> None:
        self._places: list[Any] = [None] * size
        self._meeting = threading.Barrier(size)

    def of(self, rank: int) -> Exchange:
        """The exchange of one thread with the others."""

        def exchange(parts: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
            self._places[rank] = [bytes(part) for part in parts]
            self._meeting.wait()
            received = [place[rank] for place in self._places]
            self._meeting.wait()
            return received

        return exchange


def _bytes_at(address: int, length: int) -> memoryview:
    return memoryview((ctypes.c_char * length).from_address(address)).cast("B")


def serialized_bins(dataset: Any) -> bytes:
    """The bins of a LightGBM dataset, for processes that are to have the same."""
    from lightgbm.basic import _LIB, _safe_call

    buffer, size, byte = ctypes.c_void_p(), ctypes.c_int32(), ctypes.c_uint8()
    _safe_call(_LIB.LGBM_DatasetSerializeReferenceToBinary(dataset._handle, ctypes.byref(buffer), ctypes.byref(size)))
    content = bytearray(size.value)
    for at in range(size.value):
        _safe_call(_LIB.LGBM_ByteBufferGetAt(buffer, at, ctypes.byref(byte)))
        content[at] = byte.value
    _safe_call(_LIB.LGBM_ByteBufferFree(buffer))
    return bytes(content)


def dataset_with_bins(content: bytes, settings: dict[str, Any]) -> Any:
    """A LightGBM dataset of one row, whose bins others may refer to."""
    import lightgbm
    from lightgbm.basic import _LIB, _param_dict_to_str, _safe_call

    made = lightgbm.Dataset(None, params=settings)
    handle = ctypes.c_void_p()
    parameters = ctypes.c_char_p(_param_dict_to_str(settings).encode())
    _safe_call(
        _LIB.LGBM_DatasetCreateFromSerializedReference(
            ctypes.c_char_p(content), ctypes.c_int32(len(content)), ctypes.c_int64(1), ctypes.c_int32(0), parameters,
            ctypes.byref(handle),
        )
    )  # fmt: skip
    made._handle = handle
    return made
