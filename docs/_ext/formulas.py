"""Write the report's formulas as MathML: ``python docs/_ext/formulas.py``.

Browsers draw MathML without a script. latex2mathml makes it from LaTeX here, once, so that a report
needs neither that package nor a network.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from latex2mathml.converter import convert

FILE = Path(__file__).parents[2] / "mpc_lab" / "report" / "formulas.json"
# A list is drawn one below the other: in one line they would be wider than a sheet of paper.
FORMULAS = {
    "gap": [
        r"\text{MPC}_\varepsilon(g) = \frac{1}{P} \sum_{(i, j)} (y_i - y_j)"
        r" \qquad 0 \le s_j - s_i \le \varepsilon"
    ],
    "variance": [
        r"V_\text{query} = \frac{1}{P^2} \sum_q \left( \sum\limits_{p \in q} u_p \right)^2",
        r"V_\text{item} = \frac{1}{P^2}"
        r" \left[ \sum\limits_i S_i^2 - \sum\limits_{ij} U_{ij}^2 \right]",
        r"V_\text{union} = V_\text{item} + V_\text{query} - V_\text{both}",
    ],
    "effective": [r"G = \frac{\left( \sum\limits_k c_k \right)^2}{\sum\limits_k c_k^2}"],
    "interval": [r"\theta \;\pm\; t_{1 - a / 2m,\, G - 1} \sqrt{V \cdot \frac{G}{G - 1}}"],
    "mde": [r"\text{MDE} = (t_{1 - a / 2} + t_p) \cdot \text{SE}"],
    "limit": [
        r"\min\limits_\beta \sum_{\Delta \le h} \left( 1 - \frac{\Delta}{h} \right)"
        r" \left( d - \beta_0 - \beta_1 \Delta - \beta_2 \Delta^2 \right)^2"
    ],
}


def make() -> str:
    """Return all formulas as one JSON text: their LaTeX and MathML by name."""
    formulas = {
        name: {"latex": lines, "mathml": [convert(line, display="block") for line in lines]}
        for name, lines in FORMULAS.items()
    }
    made_with = f"latex2mathml {version('latex2mathml')}"
    whole = {"made_with": made_with, "formulas": formulas}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(make(), "utf-8")
