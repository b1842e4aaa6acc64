"""Workers that crash, hang and raise, and the journal of what is done."""

import os
import sys
import time

from gradsmith.tools.workers import Journal, Partial, Pool


def work(item, tell):
    tell("at work")
    sys.stdout.write(f"item {item}\n")
    if item == "crash":
        os.abort()
    if item == "hang":
        tell(Partial("half"))
        time.sleep(60)
    if item == "raise":
        raise KeyError(item)
    return lambda: item  # which can't be pickled


def double(item, tell):
    return 2 * item


def answers(fn, items, **options):
    with Pool(fn, **options) as pool:
        pool.add(items)
        return {answer.item: answer for answer in pool.answers() if answer}


def test_what_comes_of_items():
    found = answers(double, [1, 2, 3], jobs=2)
    assert {item: a.result for item, a in found.items()} == {1: 2, 2: 4, 3: 6}


def test_a_lost_worker_is_replaced_and_told():
    found = answers(work, ["crash", "hang", "raise", "lambda"], jobs=1, limit=1.0)
    assert "SIGABRT" in found["crash"].lost
    assert "in work" in found["crash"].trace
    assert found["crash"].output.startswith("item crash")
    assert found["hang"].lost == "took longer than 1 s"
    assert (found["hang"].phase, found["hang"].partial) == ("at work", "half")
    assert isinstance(found["raise"].error, KeyError)
    assert "in work" in found["raise"].error.__notes__[0]
    assert "pickle" in str(found["lambda"].error).lower()


def test_a_journal_keeps_rows_by_their_keys(tmp_path):
    path = tmp_path / "done.jsonl"
    Journal(path).add({"key": "a", "ulp": float("inf")})
    with path.open("a") as file:
        file.write('{"key": "b')
    journal = Journal(path)
    assert journal.rows == {"a": {"key": "a", "ulp": float("inf")}}
    journal.add({"key": "c"})
    assert set(Journal(path).rows) == {"a", "c"}
    Journal(None).add({"key": "d"})
