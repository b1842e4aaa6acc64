from gradsmith.core import compilers


def test_a_compiler_is_told_of_what_came_before_and_after(monkeypatch):
    monkeypatch.setattr(compilers, "_methods", [])
    monkeypatch.setattr(compilers, "_compilers", [])
    told = []
    compilers.not_traced(str, "upper", reason="before")
    compilers.add_compiler(lambda *what: told.append(what))
    compilers.not_traced(str, "lower", "title", reason="after")
    assert told == [
        (str, "upper", "before"),
        (str, "lower", "after"),
        (str, "title", "after"),
    ]
