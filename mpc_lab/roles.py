"""The roles of a log's columns, with everything that is asked and said about each role.

May import from: nothing here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Role:
    """What a column of a log is for.

    Attributes
    ----------
    name : str
        The keyword of `mpc_lab.Ranking`, the key of a config file, and the word in errors.
    label, hint : str
        What the panel that starts from a log says about it.
    help : str
        What the command line says about it.
    words : tuple of str
        Words in the name of a column that suggest the role, the most telling first.
    is_needed : bool
        Whether every audit needs it.
    takes_several : bool
        Whether it may be several columns together.
    is_number : bool
        Whether its column holds numbers, rather than ids or labels.
    is_unique : bool
        Whether a value may occur only once in a query.
    is_constant : bool
        Whether all rows of a query must have the same value.
    may_be_missing : bool
        Whether a row may lack it.
    """

    name: str
    label: str
    hint: str
    help: str
    words: tuple[str, ...]
    is_needed: bool = False
    takes_several: bool = False
    is_number: bool = False
    is_unique: bool = False
    is_constant: bool = False
    may_be_missing: bool = False

    def describe(self, column: object) -> str:
        """Begin a sentence about the column that plays the role."""
        return f"The {self.name} column {column!r}"


def _role(name: str, hint: str, help: str, words: str, **settings: bool) -> Role:
    return Role(name, name.capitalize(), hint, help, tuple(words.split()), **settings)


# In the order in which people are asked for them.
ROLES = {
    role.name: role
    for role in (
        _role(
            "query",
            "what a ranked list belongs to",
            "what a ranked list belongs to; several columns make it together, in a comma list or "
            "with the option repeated",
            "qid query request search srch session list impression context page user uid "
            "customer reader visitor member",
            is_needed=True,
            takes_several=True,
        ),
        _role(
            "item",
            "what was ranked",
            "what was ranked; intervals then allow for items that recur",
            "item docno doc document movie product listing sku asin candidate article ad post job "
            "song track video book hotel prop restaurant property url title name",
            is_unique=True,
        ),
        _role(
            "label",
            "what an item is called: a title",
            "what an item is called where it is shown, such as its title",
            "",  # guessed from its values
            may_be_missing=True,
        ),
        _role(
            "producer",
            "whom items belong to: a seller, an author",
            "whom items belong to, such as the seller or author; intervals then allow for them",
            "producer seller author employer publisher artist vendor merchant supplier creator "
            "company brandowner",
            may_be_missing=True,
        ),
        _role(
            "score",
            "the number the list was ranked by",
            "the score that items were ranked by",
            "score prediction predicted pred prob probability logit yhat utility estimate model",
            is_needed=True,
            is_number=True,
        ),
        _role(
            "outcome",
            "what happened: a click, a rating",
            "the outcome of showing the item",
            "outcome label rating click clicked clicks relevance rel grade target ytrue y "
            "conversion converted purchase purchased bought booking booked hired applied reward "
            "gain response engagement watched feedback stars recid recidivism reoffended default "
            "defaulted churn churned returned refunded fraud complaint",
            is_needed=True,
            is_number=True,
        ),
        _role(
            "group",
            "labels of the items to audit",
            "a column of labels, or several columns of true/false",
            "group groups genre genres race ethnicity gender sex category categories labels type "
            "kind brand class tag tags protected attribute subgroup seller",
            is_needed=True,
            takes_several=True,
        ),
        _role(
            "position",
            "logged place, 1 = top",
            "logged position, 1 = top",
            "position pos rank ranking place slot",
            is_number=True,
            is_unique=True,
        ),
        _role(
            "examined",
            "probability that the row was looked at: outcomes are divided by it",
            "probability that the row was looked at; outcomes are divided by it. A column, or a "
            "number n for place^-n",
            "",  # never guessed: it changes what the outcome means
            is_number=True,
        ),
        _role(
            "unit",
            "what queries belong to, such as a user",
            "a coarser cluster of queries, such as the user",
            "unit user uid customer reader visitor member account client person household",
            is_constant=True,
        ),
        _role(
            "segment",
            "label of the query",
            "a label of the query, such as a country",
            "segment country market locale language lang device platform intent site querytype",
            is_constant=True,
        ),
        _role(
            "time",
            "when the row was shown: the order of repeated looks",
            "when the row was shown, for the order of repeated looks: numbers, dates or ISO 8601",
            "",
        ),
        _role(
            "weight",
            "what a query counts: one over the probability that it was sampled",
            "how much a query counts, one number above 0 for each query: one over the probability "
            "that it was sampled",
            "",
            is_number=True,
            is_constant=True,
        ),
    )
}
NEEDED_ROLES = tuple(role.name for role in ROLES.values() if role.is_needed)
