"""Kernels with vectors of one width, so that one seed gives one model on any x86-64 processor since AVX2.

Kernels that may sum in any order sum by vectors, in as many partial sums as a vector has places. LLVM takes vectors of
512 bits on some processors and of 256 on others: sums then differ in their last digits, and a step rule that looks for
the best of all weights makes another model of that. Most processors with 512 bits prefer 256 anyway; on the others
nothing measurable is lost.

All of this is beyond Numba's documentation; tests/unit/runtime/test_numba_internals.py looks at it. A version of Numba
that has changed compiles for the processor's own width.
"""

from __future__ import annotations

from typing import Any

WIDTH = 256
"""Bits of the vectors."""
_ATTRIBUTE = f'"prefer-vector-width"="{WIDTH}"'

PIPELINE: dict[str, Any] = {}
"""The option of ``numba.njit`` that gives a kernel this width; empty if Numba has become too different."""

try:
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.lowering import Lower
    from numba.core.typed_passes import BaseNativeLowering, NativeLowering
except ImportError:
    pass
else:

    class _SteadyLower(Lower):  # type: ignore[misc]
        """Writes LLVM's code of a kernel, with its width."""

        def setup_function(self, fndesc: Any) -> None:
            """Begin the function."""
            super().setup_function(fndesc)
            # The list of attributes that llvmlite knows has those without a value only.
            set.add(self.function.attributes, _ATTRIBUTE)

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _SteadyLowering(BaseNativeLowering):  # type: ignore[misc]
        """The pass of Numba that writes LLVM's code."""

        _name = "native_lowering_of_one_width"

        @property
        def lowering_class(self) -> type[Lower]:
            """What does the work."""
            return _SteadyLower

    class _SteadyCompiler(CompilerBase):  # type: ignore[misc]
        """Numba's compiler with that pass in the place of its own."""

        def define_pipelines(self) -> list[Any]:
            """The passes of nopython mode."""
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
            passes.passes = [(_SteadyLowering if each is NativeLowering else each, why) for each, why in passes.passes]
            passes.finalize()
            return [passes]

    PIPELINE = {"pipeline_class": _SteadyCompiler}
