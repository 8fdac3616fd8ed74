"""Sums become estimates: variances, intervals, families of tests, power, verdicts.

Plain numpy arrays come in and plain numpy arrays go out; labels are put on in `results`.
`estimates` turns sums over clusters into estimates; `clustered` does the same for numbers that
come one a pair, row or query. The room imports numpy, ``scipy.special``, `errors`, `vocabulary`
and the sums of `pairing` at module level. statsmodels appears in `regression` alone, pandas there
and in `stacking`, and both load when they are called; `placebo` and `slices` bring the kernels of
`pairing` with them.
"""
