"""Which keys get a row, and what a row counts: the `entry` of paddle.static.nn.sparse_embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetrun._arguments import plain

if TYPE_CHECKING:
    from fleetrun import _native

__all__ = ["CountFilterEntry", "EntryAttr", "ProbabilityEntry", "ShowClickEntry"]


class EntryAttr:
    """Base of all entries: choose() tells the table."""

    def choose(self, choice: _native.TableChoice) -> None:
        """Puts what this entry says into the native TableChoice `choice`."""
        raise NotImplementedError(type(self).__name__)

    def _to_attr(self):
        raise NotImplementedError(type(self).__name__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(value) for value in vars(self).values())})"


class CountFilterEntry(EntryAttr):
    """A key gets its row when it has been pushed `count_filter` times; until then it has its initial values.

    bloom (not in Paddle): keys are counted by a counting Bloom filter, whose memory is bounded: a key may get
    its row early, never late. Throws: ValueError.
    """

    def __init__(self, count_filter: int, bloom: bool = False) -> None:
        count_filter = plain(count_filter)
        if not isinstance(count_filter, int) or isinstance(count_filter, bool) or count_filter < 0:
            raise ValueError("count_filter must be a valid integer greater or equal than 0")
        self.count_filter = count_filter
        self.bloom = bool(bloom)

    def choose(self, choice: _native.TableChoice) -> None:
        if self.count_filter > 1:
            choice.admission.kind = "count_bloom" if self.bloom else "count"
            choice.admission.threshold = self.count_filter

    def _to_attr(self):
        return f"count_filter_entry:{self.count_filter}"


class ProbabilityEntry(EntryAttr):
    """A key gets a row with this probability: by its hash, so always or never. Throws: ValueError."""

    def __init__(self, probability: float) -> None:
        probability = plain(probability)
        if not isinstance(probability, float) or not 0 < probability < 1:
            raise ValueError("probability must be a float in (0,1)")
        self.probability = probability

    def choose(self, choice: _native.TableChoice) -> None:
        choice.admission.kind = "probability"
        choice.admission.probability = self.probability

    def _to_attr(self):
        return f"probability_entry:{self.probability}"


class ShowClickEntry(EntryAttr):
    """Rows count shows and clicks, which the program's variables of these names give for each example.

    Both are paddle.static.data(name, [None, 1]), int64 or float32. Throws: ValueError.
    """

    def __init__(self, show_name: str, click_name: str) -> None:
        if not isinstance(show_name, str) or not isinstance(click_name, str):
            raise ValueError("show_name click_name must be a str")
        self.show_name = show_name
        self.click_name = click_name

    def choose(self, choice: _native.TableChoice) -> None:
        if choice.accessor.kind == "plain":
            choice.accessor.kind = "sparse"
        choice.shows = self.show_name
        choice.clicks = self.click_name

    def _to_attr(self):
        return f"show_click_entry:{self.show_name}:{self.click_name}"
