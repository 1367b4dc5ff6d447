"""What a query of change events keeps from earlier batches."""

from lakelet.spark.cdc.batch_memory import BatchMemory


def test_an_expression_is_built_once() -> None:
    memory, calls = BatchMemory(), list[int]()

    def build() -> int:
        calls.append(1)
        return 7

    assert [memory.once(("rows", 1), build), memory.once(("rows", 1), build), memory.once("other", build)] == [7, 7, 7]
    assert len(calls) == 2


def test_what_is_kept_is_bounded() -> None:
    memory = BatchMemory()
    for number in range(5000):
        memory.once(number, object)
        memory.learn({number: "layout"})
    assert 0 < len(memory.layouts) <= 512
    assert memory.layouts[4999] == "layout"


def test_poison_is_expected_for_some_batches_after_it_was_found() -> None:
    memory = BatchMemory()
    assert not memory.expects_poison
    memory.ended(poison=True)
    expected = []
    for _ in range(10):
        expected.append(memory.expects_poison)
        memory.ended(poison=False)
    assert expected == [True] * 8 + [False] * 2
