"""What a ranked list is worth, and what a boost does to it: position weights, NDCG, α*.

Plain arrays and small dataclasses; labels are put on in `results`. Kernels bring numba with them,
so the modules are imported where they are used. May import from `errors`, `ranking`, `scoring`,
`pairing` and `inference`.
"""
