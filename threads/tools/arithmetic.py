"""The tool that calculates. It walks a parsed expression and never evaluates code.

Whole numbers and fractions stay exact. What could take long is refused before it
is tried: the size of a number, of a power and of the expression are bounded.
"""

import ast
import math
import operator
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

from threads.tools.registry import ToolError

EXPRESSION_LENGTH = 500
LARGEST_BITS = 3_000
DECIMALS = 15
LARGEST_ROUND = 50
LARGEST_EXPONENT = 900
"""Of ten, in a number as it is written: its exact value is made of it."""
ROOTS = Context(prec=2 * DECIMALS)
SMALLEST_FLOAT = Decimal("1e-300")

Number = int | float | Fraction

BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def calculate(expression: str) -> str:
    """Return the value of an arithmetic expression.

    Raises:
        ToolError: it is no such expression, or too large to calculate.
    """
    if len(expression) > EXPRESSION_LENGTH:
        raise ToolError(
            f"The expression is longer than {EXPRESSION_LENGTH} characters."
        )
    source = expression.strip().replace("^", "**")
    try:
        tree = ast.parse(source, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ToolError("That is not an arithmetic expression.") from None
    try:
        return written(value_of(tree.body, source))
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None
    except (OverflowError, RecursionError):
        raise ToolError("The result is too large.") from None


def value_of(node: ast.expr, source: str) -> Number:
    """Return the value of one node of what was parsed from `source`.

    Raises:
        ToolError: the node is not arithmetic, or its value too large.
    """
    match node:
        case ast.Constant(value=bool()):
            raise ToolError("Only numbers can be calculated with.")
        case ast.Constant(value=int(number)):
            return bounded(number)
        case ast.Constant(value=float()):
            # Read as it was written, so that 0.1 + 0.2 is 0.3.
            return bounded(_decimal(ast.get_source_segment(source, node) or ""))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand, source)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return value_of(operand, source)
        case ast.BinOp(left=left, op=op, right=right):
            both = value_of(left, source), value_of(right, source)
            return bounded(_combined(op, *both))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            given = [value_of(one, source) for one in arguments]
            return bounded(_called(name, given))
        case ast.Name(id="pi"):
            return math.pi
        case ast.Name(id="e"):
            return math.e
        case _:
            raise ToolError("Only numbers, operators and simple functions are known.")


def _decimal(written: str) -> Fraction:
    """Read a number with a point or an exponent.

    Raises:
        ToolError: it is too large, or too close to zero.
    """
    _, _, exponent = written.lower().partition("e")
    if abs(int(exponent or 0)) > LARGEST_EXPONENT:
        raise ToolError("That number is too large, or too close to zero.")
    return Fraction(written)


def _combined(op: ast.operator, left: Number, right: Number) -> Number:
    if isinstance(op, ast.Pow):
        return _power(left, right)
    if isinstance(op, ast.Div):
        if isinstance(left, float) or isinstance(right, float):
            return float(left) / float(right)
        return Fraction(left) / Fraction(right)
    function = BINARY.get(type(op))
    if function is None:
        raise ToolError("That operator is not known.")
    return function(left, right)


def _power(base: Number, exponent: Number) -> Number:
    if (
        isinstance(base, float)
        or isinstance(exponent, float)
        or exponent != int(exponent)
    ):
        if base < 0:
            raise ToolError("The result is not a real number.")
        if base == 0 and exponent < 0:
            raise ZeroDivisionError
        return math.pow(base, exponent)
    whole = int(exponent)
    # It has at least so many bits, and never twice as many.
    if (bits_of(base) - 1) * abs(whole) > LARGEST_BITS:
        raise ToolError("The result is too large.")
    return Fraction(base) ** whole


def _called(name: str, arguments: list[Number]) -> Number:
    match name, arguments:
        case "sqrt", [_]:
            return _root(arguments[0])
        case "abs", [_]:
            return max(arguments[0], -arguments[0])
        case "round", [_] | [_, _]:
            return _rounded(*arguments)
        case "min" | "max", [_, *_]:
            ordered = sorted(arguments)
            return ordered[0] if name == "min" else ordered[-1]
        case _:
            raise ToolError(f"There is no function {name[:30]!r} with these arguments.")


def _rounded(number: Number, digits: Number = 0) -> Number:
    if digits != int(digits) or not -LARGEST_ROUND <= digits <= LARGEST_ROUND:
        raise ToolError("That cannot be rounded to so many digits.")
    return round(Fraction(number), int(digits))


def _root(number: Number) -> Number:
    if number < 0:
        raise ToolError("The result is not a real number.")
    if isinstance(number, float):
        return math.sqrt(number)
    exact = Fraction(number)
    root = Fraction(math.isqrt(exact.numerator), math.isqrt(exact.denominator))
    if root**2 == exact:
        return root
    close = ROOTS.sqrt(_divided(exact, ROOTS))
    # A float would take what is very small for nothing.
    return Fraction(close) if close < SMALLEST_FLOAT else float(close)


def bits_of(number: Number) -> int:
    """Return how many bits an exact number takes."""
    if isinstance(number, float):
        return 64
    exact = Fraction(number)
    return max(exact.numerator.bit_length(), exact.denominator.bit_length())


def bounded(number: Number) -> Number:
    """Return the number.

    Raises:
        ToolError: it is too large, or not finite.
    """
    if bits_of(number) > LARGEST_BITS or not math.isfinite(
        number if isinstance(number, float) else 0.0
    ):
        raise ToolError("The result is too large.")
    return number


def written(number: Number) -> str:
    """Write a number: whole where it is whole, else with up to 15 digits."""
    if isinstance(number, float):
        return f"{number + 0.0:.{DECIMALS}g}"
    exact = Fraction(number)
    if exact.denominator == 1:
        return str(exact.numerator)
    rest = exact.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1 or exact.denominator > 10**DECIMALS:
        rounded = _divided(exact, Context(prec=DECIMALS))
        return f"{rounded.normalize():.{DECIMALS}g}"
    shift = next(n for n in range(1, 60) if (exact * 10**n).denominator == 1)
    digits = str(abs((exact * 10**shift).numerator)).rjust(shift + 1, "0")
    sign = "-" if exact < 0 else ""
    return f"{sign}{digits[:-shift]}.{digits[-shift:]}"


def _divided(exact: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
