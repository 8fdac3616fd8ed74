"""The comparators, one file each, on the same log and with intervals by query.

Each takes a `Case` and gives `Comparison`s: plain numbers that say what they condition on.
`registry` lists them. Kernels bring numba with them, so the modules are imported where they are
used. May import from `errors`, `vocabulary`, `text`, `ranking`, `scoring`, `pairing`, `inference`
and `objective`.
"""
