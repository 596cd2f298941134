"""Print: a variable's value, written whenever it is computed."""

from fleetrun import framework


def Print(input, first_n=-1, message=None, summarize=20, print_tensor_name=True, print_tensor_type=True,  # noqa: A002, N802
          print_tensor_shape=True, print_tensor_layout=True, print_tensor_lod=True, print_phase="both"):
    """`input` itself; when it is computed, its name, shape, type and first `summarize` values go to the standard output.

    first_n: so many times, -1 for always. print_phase: "forward", "backward" (the gradient) or "both".
    """
    # Passes may give the variable another name.
    return framework.append("print", "print", [input], {
        "name": input.name, "first_n": int(first_n), "message": message or "", "summarize": int(summarize),
        "print_phase": print_phase.lower(),
        "print_tensor_name": bool(print_tensor_name), "print_tensor_type": bool(print_tensor_type),
        "print_tensor_shape": bool(print_tensor_shape), "print_tensor_layout": bool(print_tensor_layout),
        "print_tensor_lod": bool(print_tensor_lod)})
