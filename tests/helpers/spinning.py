"""A kernel that runs until it is stopped."""

from mpc_lab.pairing.kernels import kernel


@kernel
def spin(stop, steps, x):
    """Run for long unless it is stopped; like our kernels, it writes to memory while it does."""
    for _ in range(steps):
        if stop[0]:
            return
        for _ in range(500):
            x[0] = 4.0 * x[0] * (1.0 - x[0])
