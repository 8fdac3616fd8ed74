"""The files that the pages on the command line suppose to be there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

CONFIG = """files = "log.csv"
query = "user"
item = "movie"
score = "score"
outcome = "rating"
group = "genres"
group_sep = "|"
"""


def write_sample_files(folder: Path) -> None:
    """Write a log of ratings as CSV, one of clicks as Parquet, and a config."""
    rng = np.random.default_rng(0)
    users, shown = 250, 12
    rows = users * shown
    score = rng.normal(size=rows)
    ratings = pd.DataFrame(
        {
            "user": np.repeat(np.arange(users), shown),
            "day": np.repeat(np.arange(users) % 3, shown),
            "movie": np.concatenate([rng.permutation(60)[:shown] for _ in range(users)]),
            "score": score,
            "new_score": score + rng.normal(size=rows),
            "rating": rng.integers(1, 6, size=rows),
            "genres": rng.choice(["Drama", "Comedy|Drama", "Action"], size=rows),
        }
    )
    clicks = ratings.rename(columns={"score": "s"}).assign(
        clicked=ratings["rating"] > 3,
        is_new=rng.random(rows) < 0.3,
        is_local=rng.random(rows) < 0.5,
    )
    (folder / "logs" / "2026-01").mkdir(parents=True)
    ratings.to_csv(folder / "log.csv", index=False)
    ratings.to_csv(folder / "logs" / "ratings.csv", index=False)
    clicks.to_parquet(folder / "logs" / "2026-01" / "clicks.parquet", index=False)
    (folder / "audit.toml").write_text(CONFIG)
    (folder / ".local" / "share" / "bash-completion" / "completions").mkdir(parents=True)
