"""The equations of the method in MathML, which browsers draw without a script."""

from __future__ import annotations


def _mi(name: str) -> str:
    return f"<mi>{name}</mi>"


def _mo(sign: str) -> str:
    return f"<mo>{sign}</mo>"


def _mn(number: str) -> str:
    return f"<mn>{number}</mn>"


def _row(*parts: str) -> str:
    return f"<mrow>{''.join(parts)}</mrow>"


def _sub(base: str, under: str) -> str:
    return f"<msub>{base}{under}</msub>"


def _square(base: str) -> str:
    return f"<msup>{base}{_mn('2')}</msup>"


def _over(top: str, bottom: str) -> str:
    return f"<mfrac>{top}{bottom}</mfrac>"


def _sum(under: str) -> str:
    return f"<munder>{_mo('∑')}{under}</munder>"


def _in(*parts: str) -> str:
    return _row('<mo stretchy="false">(</mo>', *parts, '<mo stretchy="false">)</mo>')


def _name(text: str) -> str:
    return f"<mtext>{text}</mtext>"


def _equation(*parts: str) -> str:
    return f'<div class="equation"><math display="block">{_row(*parts)}</math></div>'


_I, _J, _Q, _P, _G, _T, _A, _M = (_mi(letter) for letter in "ijqPGtam")
_Y, _S, _U, _C = (_mi(letter) for letter in "ysuc")
_EPSILON, _THETA = _mi("ε"), _mi("θ")
_PER_P2 = _over(_mn("1"), _square(_P))
_GAP = _equation(
    _sub(_name("MPC"), _EPSILON),
    _in(_mi("g")),
    _mo("="),
    _over(_mn("1"), _P),
    _sum(_in(_I, _mo(","), _J)),
    _in(_sub(_Y, _I), _mo("−"), _sub(_Y, _J)),
    "<mspace width='1.5em'/>",
    _mn("0"),
    _mo("≤"),
    _sub(_S, _J),
    _mo("−"),
    _sub(_S, _I),
    _mo("≤"),
    _EPSILON,
)
_SUM_Q = _square(_in(_sum(_row(_mi("p"), _mo("∈"), _Q)), _sub(_U, _mi("p"))))
_V_QUERY = _equation(
    _sub(_mi("V"), _name("query")),
    _mo("="),
    _PER_P2,
    _sum(_Q),
    _SUM_Q,
)
_V_ITEM = _equation(
    _sub(_mi("V"), _name("item")),
    _mo("="),
    _PER_P2,
    '<mo stretchy="true">[</mo>',
    _sum(_I),
    f"<msubsup>{_mi('S')}{_I}{_mn('2')}</msubsup>",
    _mo("−"),
    _sum(_row(_I, _J)),
    f"<msubsup>{_mi('U')}{_row(_I, _J)}{_mn('2')}</msubsup>",
    '<mo stretchy="true">]</mo>',
)
_V_UNION = _equation(
    _sub(_mi("V"), _name("union")),
    _mo("="),
    _sub(_mi("V"), _name("item")),
    _mo("+"),
    _sub(_mi("V"), _name("query")),
    _mo("−"),
    _sub(_mi("V"), _name("both")),
)
_EFFECTIVE = _equation(
    _G,
    _mo("="),
    _over(
        _square(_in(_sum(_mi("k")), _sub(_C, _mi("k")))),
        _row(_sum(_mi("k")), f"<msubsup>{_C}{_mi('k')}{_mn('2')}</msubsup>"),
    ),
)
_INTERVAL = _equation(
    _THETA,
    _mo("±"),
    _sub(
        _T, _row(_mn("1"), _mo("−"), _A, _mo("/"), _mn("2"), _M, _mo(","), _G, _mo("−"), _mn("1"))
    ),
    f"<msqrt>{_row(_mi('V'), _mo('⋅'), _over(_G, _row(_G, _mo('−'), _mn('1'))))}</msqrt>",
)
_MDE = _equation(
    _name("MDE"),
    _mo("="),
    _in(
        _sub(_T, _row(_mn("1"), _mo("−"), _A, _mo("/"), _mn("2"))),
        _mo("+"),
        _sub(_T, _name("power")),
    ),
    _mo("⋅"),
    _name("SE"),
)
_LIMIT = _equation(
    f"<munder>{_mo('min')}{_row(_mi('β'))}</munder>",
    _sum(_row(_mi("Δ"), _mo("≤"), _mi("h"))),
    _in(_mn("1"), _mo("−"), _over(_mi("Δ"), _mi("h"))),
    _square(
        _in(
            _mi("d"),
            _mo("−"),
            _sub(_mi("β"), _mn("0")),
            _mo("−"),
            _sub(_mi("β"), _mn("1")),
            _mi("Δ"),
            _mo("−"),
            _sub(_mi("β"), _mn("2")),
            _square(_mi("Δ")),
        )
    ),
)

EQUATIONS = {
    "gap": _GAP,
    # One below the other: in one line they are wider than a sheet of paper.
    "variance": _V_QUERY + _V_ITEM + _V_UNION,
    "effective": _EFFECTIVE,
    "interval": _INTERVAL,
    "mde": _MDE,
    "limit": _LIMIT,
}
