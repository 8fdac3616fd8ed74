"""What several tests share: oracles, strategies, logs, saved files, browsers."""
