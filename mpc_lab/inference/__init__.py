"""Sums become estimates: variances, intervals, families of tests, power, verdicts.

Plain numpy arrays come in and plain numpy arrays go out; labels are put on in `results`.
The room imports numpy, ``scipy.special``, `mpc_lab.errors` and the sums of `mpc_lab.pairing` at
module level. statsmodels and pandas appear in `regression` alone, and load when it is called;
`placebo` deals out groups anew, and brings the kernels of `pairing` with it.
"""
