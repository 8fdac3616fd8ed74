"""The rival measures, one file each, on the same log and with intervals by query.

Each takes a `Ranking` and a group and gives `Measure`s: plain numbers that say what they condition
on. Kernels bring numba with them, so the modules are imported where they are used. May import from
`errors`, `ranking`, `scoring`, `pairing`, `inference` and `objective`.
"""
