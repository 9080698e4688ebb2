"""Which calls of a configuration cost money, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.assembly import target
from skillarena.orchestration.backbones.prices import Price, read_price


def price_of(section: Mapping[str, Any], part: str) -> Price | None:
    """The price of a model's tokens: the section's ``price``, else what its class says (0 for models of one's own).

    Args:
        section: a backbone's section, or that of a parser's model.
        part: the section's name, for messages.

    Raises:
        ConfigError: the class cannot be imported, or ``price`` makes no sense.
    """
    if section.get("price") is not None:
        return read_price(section["price"])
    price = getattr(target(section, part), "price", None)
    return price if isinstance(price, Price) else None


def models_called(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The sections of all language models that a cell calls, by their dotted names.

    Args:
        sections: the cell's sections, without those of parts that its selector does not use.
    """
    called = {"backbone": sections["backbone"]}
    model = sections.get("parser", {}).get("model")
    called |= {"parser.model": model} if model else {}
    return called | ({"llm": sections["llm"]} if "llm" in sections else {})


def check_priced(sections: Mapping[str, Mapping[str, Any]]) -> None:
    """A cap in money needs the price of every model that is called.

    Args:
        sections: as for ``models_called``.

    Raises:
        ConfigError: naming the first model without a price.
    """
    for name, section in models_called(sections).items():
        if price_of(section, name) is None:
            raise ConfigError(
                f"run.max_cost is set, but {name}.price is not known",
                f"set {name}.price.prompt, .cached and .completion (money for a million tokens), or use run.max_tokens",
            )
