"""Vectors as values in kernels: LLVM cannot vectorise short loops over arrays that might overlap.

``v = load(x, i)`` reads WIDTH neighbouring numbers of a contiguous array into a register, ``+ − *``
work on registers, ``store(x, i, v)`` writes them back. LLVM maps a vector to whatever registers the
machine has, so the code is the same for AVX-512, AVX2 and NEON.
"""

from __future__ import annotations

import math
import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, models, overload, register_model

from locole.kernels.jit import kernel

__all__ = [
    "WIDTH",
    "aligned",
    "broadcast",
    "exceeds",
    "exp",
    "fma",
    "fnma",
    "greatest",
    "load",
    "maximum",
    "minimum",
    "padded_width",
    "prefetch",
    "store",
    "total",
    "zeros",
]

#: Numbers in a vector.
WIDTH = 16


def padded_width(n: int) -> int:
    """Return n rounded up to whole vectors."""
    return -(-n // WIDTH) * WIDTH


class Vector(types.Type):
    """WIDTH floating-point numbers in a register."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        scalar = ir.FloatType() if fe_type.dtype == types.float32 else ir.DoubleType()
        super().__init__(dmm, fe_type, ir.VectorType(scalar, WIDTH))


def _pointer(context, builder, array_type, array, index, vector_type):
    """Address of element ``index`` of a contiguous array, as a pointer to a vector."""
    made = cgutils.create_struct_proxy(array_type)(context, builder, value=array)
    if config.BOUNDSCHECK and isinstance(vector_type, ir.VectorType):
        _check_bounds(context, builder, made.nitems, index, vector_type.count)
    address = builder.gep(made.data, [index])
    return builder.bitcast(address, vector_type.as_pointer())


def _check_bounds(context, builder, size, index, count):
    """Raise IndexError for a vector outside its array, where numba checks indices, too."""
    last = builder.add(index, ir.Constant(index.type, count))
    below = builder.icmp_signed("<", index, ir.Constant(index.type, 0))
    beyond = builder.icmp_signed(">", last, size)
    with builder.if_then(builder.or_(below, beyond), likely=False):
        context.call_conv.return_user_exc(builder, IndexError, ("vector out of bounds",))


@intrinsic
def load(typingctx, array, index):
    """Read ``array[index : index + WIDTH]``.

    Numbers stored in fewer bits become float32: uint16 holds half-precision numbers, int8 whole ones,
    and uint8 two whole ones from −8 to 7, with 8 added, the first in the low bits. There ``index``
    counts numbers, not bytes, and is even.
    """
    stored = {types.uint16: ir.HalfType(), types.int8: ir.IntType(8)}.get(array.dtype)
    is_wide = stored is None and array.dtype != types.uint8
    vector = Vector(array.dtype if is_wide else types.float32)

    def codegen(context, builder, signature, args):
        vector_type = context.get_value_type(vector)
        if array.dtype == types.uint8:
            return _load_nibbles(context, builder, signature.args[0], *args, vector_type)
        read_type = vector_type if stored is None else ir.VectorType(stored, WIDTH)
        value = builder.load(_pointer(context, builder, signature.args[0], *args, read_type))
        value.align = array.dtype.bitwidth // 8
        if stored is None:
            return value
        convert = builder.sitofp if array.dtype == types.int8 else builder.fpext
        return convert(value, vector_type)

    return vector(array, types.intp), codegen


def _load_nibbles(context, builder, array_type, array, index, vector_type):
    """WIDTH numbers of four bits as float32."""
    byte, half = ir.IntType(8), WIDTH // 2
    halves = ir.VectorType(byte, half)
    place = builder.ashr(index, ir.Constant(index.type, 1))
    value = builder.load(_pointer(context, builder, array_type, array, place, halves))
    value.align = 1

    def all_of(number, count):
        return ir.Constant(ir.VectorType(byte, count), [number] * count)

    low = builder.and_(value, all_of(15, half))
    high = builder.lshr(value, all_of(4, half))
    in_turn = [i // 2 + half * (i % 2) for i in range(WIDTH)]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), in_turn)
    both = builder.sub(builder.shuffle_vector(low, high, mask), all_of(8, WIDTH))
    return builder.sitofp(both, vector_type)


@intrinsic
def store(typingctx, array, index, value):
    """Write ``array[index : index + WIDTH] = value``; uint16 takes half-precision numbers."""

    def codegen(context, builder, signature, args):
        array_value, index_value, vector_value = args
        if array.dtype == types.uint16:
            vector_value = builder.fptrunc(vector_value, ir.VectorType(ir.HalfType(), WIDTH))
        pointer = _pointer(
            context, builder, signature.args[0], array_value, index_value, vector_value.type
        )
        builder.store(vector_value, pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, value), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line of ``array[index]``, which will soon be read and written.

    The index is that of `load`.
    """

    def codegen(context, builder, signature, args):
        byte, number = ir.IntType(8), ir.IntType(32)
        place = args[1]
        if array.dtype == types.uint8:
            place = builder.ashr(place, ir.Constant(place.type, 1))
        pointer = _pointer(context, builder, signature.args[0], args[0], place, byte)
        function_type = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        # for reading, keep in all levels, data cache
        builder.call(function, [pointer, *(ir.Constant(number, v) for v in (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def broadcast(typingctx, scalar):
    """Return WIDTH copies of a number."""
    vector = Vector(scalar)

    def codegen(context, builder, signature, args):
        vector_type = context.get_value_type(vector)
        undefined = ir.Constant(vector_type, ir.Undefined)
        index = ir.IntType(32)
        single = builder.insert_element(undefined, args[0], ir.Constant(index, 0))
        mask = ir.Constant(ir.VectorType(index, WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(single, undefined, mask)

    return vector(scalar), codegen


@intrinsic
def zeros(typingctx, array):
    """Return a vector of zeros of the array's type."""
    vector = Vector(array.dtype)

    def codegen(context, builder, signature, args):
        return ir.Constant(context.get_value_type(vector), None)

    return vector(array), codegen


def _fma(builder, a, b, c):
    """Call LLVM's fused multiply-add for vectors, which llvmlite's builder does not offer."""
    suffix = "f32" if a.type.element == ir.FloatType() else "f64"
    function_type = ir.FunctionType(a.type, [a.type] * 3)
    name = f"llvm.fma.v{WIDTH}{suffix}"
    function = cgutils.get_or_insert_function(builder.module, function_type, name)
    return builder.call(function, [a, b, c])


@intrinsic
def fma(typingctx, a, b, c):
    """``a·b + c`` with one rounding."""

    def codegen(context, builder, signature, args):
        return _fma(builder, *args)

    return a(a, b, c), codegen


@intrinsic
def fnma(typingctx, a, b, c):
    """``c − a·b`` with one rounding."""

    def codegen(context, builder, signature, args):
        return _fma(builder, builder.fneg(args[0]), args[1], args[2])

    return a(a, b, c), codegen


@intrinsic
def maximum(typingctx, a, b):
    """Larger of two vectors, number by number."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return a(a, b), codegen


@intrinsic
def minimum(typingctx, a, b):
    """Smaller of two vectors, number by number."""

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return a(a, b), codegen


#: exp(r) = Σ r^k/k! up to here: an error below one unit in the last place for |r| ≤ ln 2 / 2.
_EXP_TERMS = 7
#: exp is 0 in effect below −87.3 and infinite above 88.7: arguments are clipped to this range.
_EXP_RANGE = (-87.0, 88.0)


@intrinsic
def exp(typingctx, a):
    """Exponential of float32 numbers, clipped to [e^−87, e^88]; relative error below 2e-7.

    x = k ln 2 + r with |r| ≤ ln 2 / 2, hence exp(x) = 2^k exp(r): a polynomial, and k added to the
    exponent's bits.
    """

    def codegen(context, builder, signature, args):
        (x,) = args
        vector = x.type

        def constant(value):
            return ir.Constant(vector, [value] * WIDTH)

        low, high = (constant(bound) for bound in _EXP_RANGE)
        x = builder.select(builder.fcmp_ordered(">", x, low), x, low)
        x = builder.select(builder.fcmp_ordered("<", x, high), x, high)
        # Adding 1.5·2^23 rounds to a whole number, which then stands in the low bits.
        shift = constant(12582912.0)
        shifted = _fma(builder, x, constant(float(np.float32(1 / np.log(2)))), shift)
        k = builder.fsub(shifted, shift)
        # ln 2 in two parts, the first with few enough bits that its multiples are exact.
        r = _fma(builder, k, constant(-0.693359375), x)
        r = _fma(builder, k, constant(float(np.float32(2.12194440e-4))), r)
        value = constant(float(np.float32(1 / math.factorial(_EXP_TERMS))))
        for power in range(_EXP_TERMS - 1, -1, -1):
            value = _fma(builder, value, r, constant(float(np.float32(1 / math.factorial(power)))))
        whole = ir.VectorType(ir.IntType(32), WIDTH)
        bits = builder.shl(builder.bitcast(shifted, whole), ir.Constant(whole, [23] * WIDTH))
        return builder.bitcast(builder.add(builder.bitcast(value, whole), bits), vector)

    return a(a), codegen


@intrinsic
def exceeds(typingctx, a, b):
    """Whether any number of ``a`` is larger than its counterpart in ``b``."""

    def codegen(context, builder, signature, args):
        hits = builder.fcmp_ordered(">", *args)
        bits = builder.bitcast(hits, ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(a, b), codegen


def _folded(combine):
    """One number of all: halves are combined until one is left, in an order that never changes."""

    @intrinsic
    def fold(typingctx, a):
        def codegen(context, builder, signature, args):
            (value,), n = args, WIDTH
            while n > 1:
                n //= 2
                mask = ir.VectorType(ir.IntType(32), n)
                low, high = (
                    builder.shuffle_vector(value, value, ir.Constant(mask, list(range(i, i + n))))
                    for i in (0, n)
                )
                value = combine(builder, low, high)
            return builder.extract_element(value, ir.Constant(ir.IntType(32), 0))

        return a.dtype(a), codegen

    return fold


#: Sum of all numbers of a vector.
total = _folded(lambda builder, a, b: builder.fadd(a, b))
#: Largest number of a vector.
greatest = _folded(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))


def _arithmetic(symbol, instruction):
    @intrinsic
    def apply(typingctx, a, b):
        def codegen(context, builder, signature, args):
            return getattr(builder, instruction)(*args)

        return a(a, b), codegen

    @overload(symbol, inline="always")
    def _overload(a, b):
        if isinstance(a, Vector) and isinstance(b, Vector):
            return lambda a, b: apply(a, b)
        return None


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")


@kernel
def aligned(size, like):
    """Return ``size`` uninitialised numbers of the type of ``like`` on a cache-line boundary.

    A vector that straddles two lines costs twice.
    """
    line = 64 // like.itemsize
    room = np.empty(size + line, dtype=like.dtype)
    offset = (-(room.ctypes.data // like.itemsize)) % line
    return room[offset : offset + size]
