"""How a log is walked: which blocks there are, and who works on them.

An engine is a `Walk`: it hands every block of whole units to a task and yields what the tasks
return, in the order of the blocks. May import from the rooms up to `results`.
"""
