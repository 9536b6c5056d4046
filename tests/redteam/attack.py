"""What an attack is: a title that says what is tried, and a function that raises Broken when the scheduler gives way."""

from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Terms:
    place: str  # folder of the whole run
    is_long: bool

    def many(self, few, lots):
        return lots if self.is_long else few


@dataclass(frozen=True)
class Attack:
    area: str
    title: str
    run: Callable


all_attacks = []


def attack(area, title):
    def keep(function):
        all_attacks.append(Attack(area, title, function))
        return function
    return keep
