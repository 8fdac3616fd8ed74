"""What the command line is made of: its options, its config file, its log files, its tables.

``mpc_lab.cli`` is the door. May import from every room above; loads nothing heavy by itself, so
that ``--help`` answers at once.
"""
