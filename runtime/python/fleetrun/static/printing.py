"""Print: a variable's value, written whenever it is computed."""

from fleetrun import framework
from fleetrun._types import Variable

__all__ = ["Print"]


def Print(
    input: Variable,
    first_n: int = -1,
    message: str | None = None,
    summarize: int = 20,
    print_tensor_name: bool = True,
    print_tensor_type: bool = True,
    print_tensor_shape: bool = True,
    print_tensor_layout: bool = True,
    print_tensor_lod: bool = True,
    print_phase: str = "both",
) -> Variable:
    """`input` itself; when it is computed, its name, shape, type and first `summarize` values go to the
    standard output.

    first_n: so many times, -1 for always. print_phase: "forward", "backward" (the gradient) or "both".
    """
    # Passes may give the variable another name.
    return framework.append(
        "print",
        "print",
        [input],
        {
            "name": input.name,
            "first_n": int(first_n),
            "message": message or "",
            "summarize": int(summarize),
            "print_phase": print_phase.lower(),
            "print_tensor_name": bool(print_tensor_name),
            "print_tensor_type": bool(print_tensor_type),
            "print_tensor_shape": bool(print_tensor_shape),
            "print_tensor_layout": bool(print_tensor_layout),
            "print_tensor_lod": bool(print_tensor_lod),
        },
    )
