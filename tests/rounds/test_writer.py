"""A round's pen: each piece is written once, and a withdrawal as what it is."""

from threads.core.snapshot import Part, generations_of, last_read
from threads.rounds.journal import Row, Writer
from threads.rounds.live import LiveCell


def text(offset: int, words: str, *, generation: int = 0) -> Row:
    return Row(Part.TEXT, generation, offset, words)


def test_a_writer_takes_each_piece_once_and_a_new_generation_whole() -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    writer = Writer(1, live, on_stop=lambda: None, on_lost=lambda: None)

    live.append("one ")
    first = writer.page()
    writer.written(first)
    live.append("two ")
    live.reason("hm")
    second = writer.page()
    writer.collect()
    live.restate("one ")
    live.append("three")
    third = writer.page()

    assert first.rows == (text(0, "one "),)
    assert second.rows[0] == text(4, "two ")
    assert third.rows[:2] == second.rows
    assert third.rows[2] == Row(Part.RESTATED, 1, 0, "one three")
    assert third.rows[3] == Row(Part.REASONING, 1, 0, "hm")


def test_a_writer_tells_of_a_withdrawal_and_goes_on_where_it_left_the_text() -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    writer = Writer(1, live, on_stop=lambda: None, on_lost=lambda: None)
    live.begin_attempt(1, 1)
    live.append("one ")
    live.reason("hm")
    writer.written(writer.page())
    live.begin_attempt(2, 1)
    live.append("two ")
    live.reason(" so")
    writer.collect()
    live.withdraw(2, 1)
    writer.collect()
    live.begin_attempt(2, 2)
    live.append("three")

    page = writer.page()

    assert page.generation == 1
    assert page.rows == (
        text(4, "two "),
        Row(Part.REASONING, 0, 2, " so"),
        Row(Part.WITHDRAWAL, 1, 4, "2.1 2"),
        Row(Part.REASONING, 1, 0, "hm"),
        text(4, "three", generation=1),
    )


def test_text_goes_on_after_a_text_that_was_restated_empty() -> None:
    live = LiveCell(1, 1, touch=lambda _: None)
    writer = Writer(1, live, on_stop=lambda: None, on_lost=lambda: None)
    live.begin_attempt(1, 1)
    live.append("A draft")
    writer.collect()
    live.withdraw(1, 1)
    writer.collect()
    assert live.let_stand()
    writer.collect()
    live.append("The answer")

    rows = writer.page().rows
    assert len({(row.part, row.generation, row.offset) for row in rows}) == len(rows)
    newest = generations_of(rows)[-1]
    assert (newest.number, newest.text, newest.kept) == (2, "The answer", None)
    assert last_read(generations_of(rows[:-1])).text == ""
